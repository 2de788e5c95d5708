-- grain: one message of this slot or an earlier one, in the order of keys
SELECT key FROM messages UNION SELECT key FROM fresh UNION SELECT key FROM seen ORDER BY key
