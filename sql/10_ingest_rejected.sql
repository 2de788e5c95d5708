-- grain: one row: how many rows of CSV files that were read did not parse
SELECT count(*) FROM reject_errors
