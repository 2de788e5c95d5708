-- grain: one row: how many users of a slice state two different profiles, where these stand: in the items file
-- ($in_source) or in the users file. A row without a declared one states the default
SELECT count(*) FROM (
    SELECT sort_key, twin
    FROM (
        SELECT sort_key, twin, profile FROM visits WHERE $in_source AND sort_key BETWEEN $first AND $last
        UNION ALL
        SELECT sort_key, twin, profile FROM stated WHERE NOT $in_source AND sort_key BETWEEN $first AND $last
    )
    GROUP BY sort_key, twin
    HAVING min(coalesce(profile, $default)) <> max(coalesce(profile, $default))
)
