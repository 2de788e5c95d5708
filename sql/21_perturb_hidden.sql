-- grain: one user of a partition, levels hidden; the order is that of a keyed hash and carries nothing
SELECT {level} AS level, {values} FROM people
WHERE sort_key BETWEEN $first AND $last
ORDER BY sort_key, twin
