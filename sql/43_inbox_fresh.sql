-- grain: one message
INSERT INTO fresh VALUES (?, ?)
