-- grain: one user of a partition at one level; the order is that of a keyed hash and carries nothing
SELECT {values} FROM people
WHERE sort_key BETWEEN $first AND $last AND {level} = $level
ORDER BY sort_key, twin
