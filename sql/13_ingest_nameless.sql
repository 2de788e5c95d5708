-- grain: one row: how many rows of a file are in the vault, and how many of them name no user
SELECT count(*), count(*) - count(sort_key) FROM {table}
