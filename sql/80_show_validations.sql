-- grain: that of validations, for one release
SELECT * EXCLUDE (release_id) FROM validations WHERE release_id = $release_id
