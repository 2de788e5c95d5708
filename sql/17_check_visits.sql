-- grain: one row: rows, rows with a user, and of these: items that are not declared, counts that are none, choices that
-- are empty or not declared; inputs: items
WITH cells AS ({source}),
placed AS (
    SELECT user_id, cells.item IS NOT NULL AND items.position IS NULL AS unknown, n, unstated
    FROM cells LEFT JOIN items ON items.name = cells.item
)
SELECT
    count(*),
    count(user_id),
    count(*) FILTER (user_id IS NOT NULL AND unknown),
    count(*) FILTER (user_id IS NOT NULL AND (n IS NULL OR n NOT BETWEEN 0 AND 1000000000)),
    count(*) FILTER (user_id IS NOT NULL AND unstated = 1),
    count(*) FILTER (user_id IS NOT NULL AND unstated = 2)
FROM placed
