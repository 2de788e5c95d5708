-- grain: one row: how many rows there are to go through, slice by slice
SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM stated)
