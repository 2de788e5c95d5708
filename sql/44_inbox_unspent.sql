-- grain: one token that nobody has used
SELECT hash FROM tokens
