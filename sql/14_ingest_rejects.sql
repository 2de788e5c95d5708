-- grain: one reason; inputs: the reader's own list of rows that do not parse, without their text
INSERT INTO quarantine SELECT error_type, count(DISTINCT line) FROM reject_errors GROUP BY error_type
