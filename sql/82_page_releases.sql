-- grain: one release, newest first, with the most a user can have spent on it; null for a refused one, and for one with
-- numbers: users report on some of them only, so that budgets of attributes do not add up to what a user spends
WITH attribute_spends AS (
    SELECT
        release_id, attribute, max(greatest(nominal_epsilon, exact_epsilon)) AS epsilon,
        bool_or(regexp_matches(mechanism, '^(pm|duchi|hm|laplace|sw)( |$)')) AS sampled
    FROM budgets
    WHERE unit = 'user'
    GROUP BY release_id, attribute
),
spends AS (
    SELECT release_id, CASE WHEN NOT bool_or(sampled) THEN sum(epsilon) END AS spent
    FROM attribute_spends
    GROUP BY release_id
)
SELECT releases.*, spends.spent, units.unit
FROM releases
LEFT JOIN spends USING (release_id)
LEFT JOIN (SELECT release_id, min(unit) AS unit FROM budgets GROUP BY release_id) AS units USING (release_id)
ORDER BY created_at DESC, release_id
