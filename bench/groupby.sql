-- The true counts of the same five columns: what a release without privacy would cost.
-- Grain: one row a column and value. Input: $source, a Parquet file.
SELECT 'a5' AS attribute, a5 AS value, count(*) AS users FROM read_parquet($source) GROUP BY a5
UNION ALL
SELECT 'a10', a10, count(*) FROM read_parquet($source) GROUP BY a10
UNION ALL
SELECT 'a15', a15, count(*) FROM read_parquet($source) GROUP BY a15
UNION ALL
SELECT 'a20', a20, count(*) FROM read_parquet($source) GROUP BY a20
UNION ALL
SELECT 'a25', a25, count(*) FROM read_parquet($source) GROUP BY a25
