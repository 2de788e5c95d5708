-- grain: that of points, of the runs that a paper's page is made of
SELECT points.* EXCLUDE (run_id) FROM points
JOIN runs USING (run_id)
WHERE paper = $paper AND shown
ORDER BY place, panel, series, x
