-- grain: one user of a partition at one level: codes of all numbers, and how much each matters where users say so
SELECT {numbers} FROM people
WHERE sort_key BETWEEN $first AND $last AND level_0 = $level
ORDER BY sort_key, twin
