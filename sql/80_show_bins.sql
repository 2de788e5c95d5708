-- grain: that of bins, for one release
SELECT * EXCLUDE (release_id) FROM bins WHERE release_id = $release_id
