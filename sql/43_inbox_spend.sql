-- grain: one token
DELETE FROM tokens WHERE hash = ?
