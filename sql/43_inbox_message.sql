-- grain: one message
INSERT INTO messages VALUES (?, ?)
