-- grain: one release, if it is there
SELECT status FROM releases WHERE release_id = $release_id
