-- grain: one user of a slice of all hashes; whoever states no profile has the default one
INSERT INTO people
SELECT sort_key, twin, coalesce(max(profile), $default)
FROM (
    SELECT sort_key, twin, profile FROM visits WHERE sort_key BETWEEN $first AND $last
    UNION ALL
    SELECT sort_key, twin, profile FROM stated WHERE sort_key BETWEEN $first AND $last
)
GROUP BY sort_key, twin
ORDER BY sort_key, twin
