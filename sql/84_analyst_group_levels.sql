-- grain: one row per level: what is published of a group of values, for the command's own interval
WITH declared AS (
    SELECT coalesce(any_value(dependence), '1') AS dependence
    FROM histograms
    WHERE release_id = chosen_release($release) AND attribute = $attribute
)
SELECT
    level,
    any_value(n_reports) AS n,
    sum(frequency) FILTER (list_contains($values::VARCHAR[], value)) AS frequency,
    count(*) FILTER (list_contains($values::VARCHAR[], value)) AS n_values,
    count(*) AS n_declared,
    any_value(noise_own) AS own,
    any_value(noise_other) AS other,
    any_value(slope) AS slope,
    any_value(base) AS base,
    any_value(declared.dependence) AS dependence
FROM level_cells($release, $attribute), declared
GROUP BY level
ORDER BY level
