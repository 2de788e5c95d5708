-- grain: that of the table, for one release
SELECT * FROM {table} WHERE release_id = $release_id
