-- grain: one row: rows, rows with a user, of those the ones in a slice of all users and how many users they are of;
-- inputs: users, rows with their user and a hash of it
SELECT
    count(*),
    count(user_id),
    count(*) FILTER (user_id IS NOT NULL AND hashed = 0),
    -- not FILTER, before which all users would be collected
    count(DISTINCT CASE WHEN user_id IS NOT NULL AND hashed = 0 THEN whole END)
FROM users
