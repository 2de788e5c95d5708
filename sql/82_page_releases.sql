-- grain: one release, newest first, with the most a user can have spent on it; null for a refused one
WITH attribute_spends AS (
    SELECT release_id, attribute, max(nominal_epsilon) AS epsilon
    FROM budgets
    WHERE unit = 'user'
    GROUP BY release_id, attribute
),
spends AS (
    SELECT release_id, sum(epsilon) AS spent
    FROM attribute_spends
    GROUP BY release_id
)
SELECT releases.*, spends.spent
FROM releases
LEFT JOIN spends USING (release_id)
ORDER BY created_at DESC, release_id
