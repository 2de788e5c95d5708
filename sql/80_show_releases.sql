-- grain: that of releases, for one release
SELECT * EXCLUDE (release_id) FROM releases WHERE release_id = $release_id
