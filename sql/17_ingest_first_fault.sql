-- grain: one row: the first readable row of the items file with a fault of this kind, and a user
WITH cells AS ({source}),
numbered AS (SELECT row_number() OVER () AS position, * FROM cells),
placed AS (
    SELECT numbered.position, numbered.n, numbered.item IS NOT NULL AND items.position IS NULL AS unknown
    FROM numbered LEFT JOIN items ON items.name = numbered.item
    WHERE numbered.user_id IS NOT NULL
)
SELECT min(position) FROM placed
WHERE CASE WHEN $fault = 1 THEN unknown ELSE n IS NULL OR n NOT BETWEEN 0 AND 1000000000 END
