-- grain: that of budgets, for one release
SELECT * EXCLUDE (release_id) FROM budgets WHERE release_id = $release_id
