-- grain: one row: how many user ids of a partition stand in more than one row
SELECT count(*) FROM (
    SELECT sort_key, twin FROM people
    WHERE sort_key BETWEEN $first AND $last
    GROUP BY sort_key, twin
    HAVING count(*) > 1
)
