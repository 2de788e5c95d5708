-- grain: one row: rows, rows with a user, different users, and for every column how many cells have no place in the plan
WITH cells AS ({source}),
positions AS (SELECT user_id, {positions} FROM cells)
SELECT count(*), count(user_id), count(DISTINCT hash(user_id)) FILTER (user_id IS NOT NULL){counts}
FROM positions
