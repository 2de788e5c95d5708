-- grain: one row: how many users of a slice state two different profiles
SELECT count(*) FROM (
    SELECT sort_key, twin
    FROM (
        SELECT sort_key, twin, profile FROM visits WHERE sort_key BETWEEN $first AND $last
        UNION ALL
        SELECT sort_key, twin, profile FROM stated WHERE sort_key BETWEEN $first AND $last
    )
    GROUP BY sort_key, twin
    HAVING min(profile) <> max(profile)
)
