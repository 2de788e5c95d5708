-- grain: one paper that was compared
SELECT
    paper,
    count(*) AS numbers,
    count(*) FILTER (verdict = 'agrees') AS agree,
    count(*) FILTER (verdict = 'differs') AS differ,
    count(*) FILTER (verdict = 'unexplained') AS unexplained
FROM comparisons
GROUP BY paper
ORDER BY paper
