-- grain: that of the table, for one release, in the order in which its rows were published
SELECT * FROM {table} WHERE release_id = $release_id ORDER BY rowid
