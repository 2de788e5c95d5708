-- grain: one row: rows of a slice of all users, and how many users they are of; inputs: users, rows with their user and
-- a hash of it
SELECT count(*), count(DISTINCT whole) FROM users WHERE user_id IS NOT NULL AND hashed = 0
