-- grain: that of aggregates, for one release
SELECT * EXCLUDE (release_id) FROM aggregates WHERE release_id = $release_id
