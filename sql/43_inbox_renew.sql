-- grain: all of the newest messages
DELETE FROM fresh
