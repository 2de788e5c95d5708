-- grain: one reason why rows of the file that was read last do not parse, by the reader's own list, without their text
SELECT error_type, count(DISTINCT line)
FROM reject_errors
GROUP BY error_type
ORDER BY error_type
