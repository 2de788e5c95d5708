-- grain: one paper that was compared
SELECT
    paper,
    count(*) AS numbers,
    count(*) FILTER (verdict = 'agrees') AS agree,
    count(*) FILTER (verdict = 'differs' AND basis = 'verified') AS verified,
    -- Judged by an earlier version it has no basis, and claims the less.
    count(*) FILTER (verdict = 'differs' AND basis IS DISTINCT FROM 'verified') AS inferred,
    count(*) FILTER (verdict = 'unexplained') AS unexplained
FROM comparisons
GROUP BY paper
ORDER BY paper
