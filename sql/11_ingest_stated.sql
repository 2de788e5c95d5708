-- grain: one row of the users file, in the order of a keyed hash of the user id; the profile is a position in the plan,
-- null where none is stated or it is not declared (unstated: 1 empty, 2 not declared)
CREATE TABLE stated AS
WITH cells AS ({source}),
placed AS (SELECT md5_number($key || user_id) AS user_hash, profile, unstated FROM cells)
SELECT
    (user_hash >> 64)::UBIGINT AS sort_key,
    (user_hash & 18446744073709551615)::UBIGINT AS twin,
    profile,
    unstated
FROM placed
ORDER BY sort_key, twin
