-- grain: that of rules, for one release
SELECT * EXCLUDE (release_id) FROM rules WHERE release_id = $release_id
