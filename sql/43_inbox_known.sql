-- grain: one message, if it is there
SELECT content FROM messages WHERE key = ?
