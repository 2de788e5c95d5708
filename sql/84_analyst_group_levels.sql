-- grain: one row per level: what is published of a group of values, for the command's own interval
WITH declared AS (
    SELECT coalesce(any_value(dependence), '1') AS dependence
    FROM histograms JOIN chosen_release($release) USING (release_id)
    WHERE attribute = $attribute
)
FROM group_levels($release, $attribute, $values), declared
ORDER BY level
