-- grain: one row: how many users of a slice have two different items
SELECT count(*) FROM (
    SELECT sort_key, twin
    FROM visits
    WHERE sort_key BETWEEN $first AND $last
    GROUP BY sort_key, twin
    HAVING min(item) <> max(item)
)
