-- grain: one user of a partition: the profile, and the aggregates in grid units;
-- the order is that of a keyed hash and carries nothing
WITH own AS (
    SELECT sort_key, twin, item, {counted}::BIGINT AS n
    FROM visits
    WHERE sort_key BETWEEN $first AND $last AND item IS NOT NULL
    GROUP BY sort_key, twin, item
),
sums AS (
    SELECT sort_key, twin, {sums}
    FROM own JOIN weights USING (item)
    GROUP BY sort_key, twin
)
SELECT people.profile, {columns}
FROM people LEFT JOIN sums USING (sort_key, twin)
WHERE people.sort_key BETWEEN $first AND $last
ORDER BY people.sort_key, people.twin
