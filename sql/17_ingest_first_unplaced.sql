-- grain: one row: the first readable row of a user with a cell that the spec has no value for, and every cell's position
WITH cells AS ({source}),
positions AS (SELECT row_number() OVER () AS position, user_id, {positions} FROM cells)
SELECT position, {names}
FROM positions
WHERE user_id IS NOT NULL AND least({names}) < 0
ORDER BY position
LIMIT 1
