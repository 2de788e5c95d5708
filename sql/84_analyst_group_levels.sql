-- grain: one row per level: what is published of a group of values, for the command's own interval
WITH chosen AS (
    SELECT coalesce(
        max(releases.release_id) FILTER (releases.release_id = $release),
        max(releases.release_id) FILTER (name = $release AND releases.release_id IN (SELECT release_id FROM latest_releases))
    ) AS release_id
    FROM releases
),
declared AS (
    SELECT coalesce(any_value(dependence), '1') AS dependence
    FROM histograms JOIN chosen USING (release_id)
    WHERE attribute = $attribute
)
SELECT
    level,
    any_value(n_reports) AS n,
    sum(frequency) FILTER (list_contains($values::VARCHAR[], value)) AS frequency,
    count(*) FILTER (list_contains($values::VARCHAR[], value)) AS n_values,
    count(*) AS n_declared,
    any_value(noise_own) AS own,
    any_value(noise_other) AS other,
    any_value(covariance_slope) AS slope,
    any_value(covariance_base) AS base,
    any_value(declared.dependence) AS dependence
FROM level_estimates
    JOIN chosen USING (release_id)
    JOIN budgets USING (release_id, attribute, level),
    declared
WHERE attribute = $attribute
GROUP BY level
ORDER BY level
