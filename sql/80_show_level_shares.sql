-- grain: that of level_shares, for one release
SELECT * EXCLUDE (release_id) FROM level_shares WHERE release_id = $release_id
