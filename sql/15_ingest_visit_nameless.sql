-- grain: one row of the items file without a user id
DELETE FROM visits WHERE sort_key IS NULL
