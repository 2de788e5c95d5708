-- grain: one row without a user id
DELETE FROM people WHERE sort_key IS NULL
