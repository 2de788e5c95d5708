-- grain: one user, with a keyed hash of the user id (sort_key, then twin), null where there is none;
-- value_i and level_i are positions in the plan, null where the spec declares no value for a cell
WITH cells AS ({source}),
positions AS (SELECT md5_number($key || user_id) AS user_hash, {positions} FROM cells)
SELECT
    (user_hash >> 64)::UBIGINT AS sort_key,
    (user_hash & 18446744073709551615)::UBIGINT AS twin,
    {columns}
FROM positions
