-- grain: one of the newest messages
SELECT key, content FROM fresh
