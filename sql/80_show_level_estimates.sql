-- grain: that of level_estimates, for one release
SELECT * EXCLUDE (release_id) FROM level_estimates WHERE release_id = $release_id
