-- grain: that of quantiles, for one release
SELECT * EXCLUDE (release_id) FROM quantiles WHERE release_id = $release_id
