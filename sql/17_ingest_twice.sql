-- grain: one user id that stands in more than one row of a partition
SELECT count(*) FROM (
    SELECT sort_key, twin FROM people
    WHERE sort_key BETWEEN $first AND $last
    GROUP BY sort_key, twin
    HAVING count(*) > 1
)
