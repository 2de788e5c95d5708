-- grain: that of itemsets, for one release
SELECT * EXCLUDE (release_id) FROM itemsets WHERE release_id = $release_id
