-- grain: one row: how many users there are
SELECT count(*) FROM people
