-- grain: one row: how many rows too many there are of users whose keys stand in the list; two users may share a key
WITH cells AS ({source})
SELECT count(*) - count(DISTINCT user_id)
FROM cells
WHERE (md5_number($key || user_id) >> 64)::UBIGINT IN (SELECT unnest($keys::UBIGINT[]))
