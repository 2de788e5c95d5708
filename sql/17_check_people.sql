-- grain: one row: rows, rows with a user, of those the ones in a slice of all users and how many users they are of, and
-- for every column how many cells have no place in the plan
WITH cells AS ({source}),
positions AS (SELECT user_id, hash(user_id) AS hashed, {positions} FROM cells)
SELECT
    count(*),
    count(user_id),
    count(*) FILTER (user_id IS NOT NULL AND hashed % {slices} = 0),
    -- not FILTER, before which all users would be collected
    count(DISTINCT CASE WHEN user_id IS NOT NULL AND hashed % {slices} = 0 THEN hashed END){counts}
FROM positions
