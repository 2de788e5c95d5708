-- grain: one user of a partition: the level, and the items as positions, rising, each once however often it stands in
-- the source; the order of users is that of a keyed hash and carries nothing
WITH distinct_items AS (
    SELECT DISTINCT sort_key, twin, item
    FROM visits
    WHERE sort_key BETWEEN $first AND $last AND item IS NOT NULL
),
held AS (
    SELECT sort_key, twin, list(item::UINTEGER ORDER BY item) AS items
    FROM distinct_items
    GROUP BY sort_key, twin
)
SELECT people.profile AS level, coalesce(held.items, {nothing}::UINTEGER[]) AS items
FROM people LEFT JOIN held USING (sort_key, twin)
WHERE people.sort_key BETWEEN $first AND $last
ORDER BY people.sort_key, people.twin
