-- grain: one token, if nobody has used it
SELECT 1 FROM tokens WHERE hash = ?
