-- grain: one row of the items file, in the order of a keyed hash of the user id (sort_key, then twin);
-- item is a position in the catalogue, null where the user has none; fault: 1 an item that is not in the catalogue,
-- 2 a count that is no whole number from 0 to 10^9; unstated: 1 an empty choice, 2 one that is not declared
CREATE TABLE visits AS
WITH cells AS ({source}),
placed AS (
    SELECT
        md5_number($key || cells.user_id) AS user_hash,
        -- an empty cell is no item, neither a declared one nor another
        CASE WHEN cells.item IS NOT NULL THEN coalesce(items.position, $other::UINTEGER) END AS item,
        n,
        profile,
        unstated,
        cells.item IS NOT NULL AND items.position IS NULL AS unknown
    FROM cells LEFT JOIN items ON items.name = cells.item
)
SELECT
    (user_hash >> 64)::UBIGINT AS sort_key,
    (user_hash & 18446744073709551615)::UBIGINT AS twin,
    item,
    n,
    profile,
    unstated,
    (CASE WHEN unknown AND $refuse THEN 1 WHEN n IS NULL OR n NOT BETWEEN 0 AND 1000000000 THEN 2 ELSE 0 END)::UTINYINT
        AS fault
FROM placed
ORDER BY sort_key, twin
