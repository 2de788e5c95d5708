-- grain: one readable row of the source, in the piece of its bucket; rows without a user are in the bucket after the
-- last. sort_key is a keyed hash of the user id; value_i and level_i are positions in the plan, null where the spec
-- declares no value for a cell
COPY (
    WITH cells AS ({source}),
    positions AS (SELECT (md5_number($key || user_id) >> 64)::UBIGINT AS sort_key, {positions} FROM cells)
    SELECT sort_key, {columns}, coalesce(sort_key % $buckets, $buckets)::UINTEGER AS bucket
    FROM positions
) TO {folder} (FORMAT parquet, PARTITION_BY (bucket), COMPRESSION uncompressed)
