-- grain: one row: how many rows of the file that was read last do not parse; a row may have two reasons
SELECT count(DISTINCT line) FROM reject_errors
