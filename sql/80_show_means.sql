-- grain: that of means, for one release
SELECT * EXCLUDE (release_id) FROM means WHERE release_id = $release_id
