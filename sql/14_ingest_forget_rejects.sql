-- grain: one reason why a row of the file that was read last does not parse; the reader adds to its list, and the next
-- file is to be counted by itself
DELETE FROM reject_errors
