-- grain: one row of a file without a user id
DELETE FROM {table} WHERE sort_key IS NULL
