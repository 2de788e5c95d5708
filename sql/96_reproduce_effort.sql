-- grain: the runs that a paper's page is made of, together
SELECT count(*) AS n_runs, coalesce(sum(seconds), 0) AS seconds, coalesce(max(repeats), 0) AS repeats
FROM runs
WHERE paper = $paper AND shown
