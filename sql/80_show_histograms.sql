-- grain: that of histograms, for one release
SELECT * EXCLUDE (release_id) FROM histograms WHERE release_id = $release_id
