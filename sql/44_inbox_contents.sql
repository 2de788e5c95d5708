-- grain: one message, in the order of keys
SELECT content FROM (SELECT key, content FROM messages UNION ALL SELECT key, content FROM fresh) ORDER BY key
