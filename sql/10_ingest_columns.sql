-- grain: one column of a table or view of the public catalogue's database
SELECT column_name
FROM duckdb_columns()
WHERE database_name = 'given' AND schema_name = 'main' AND table_name = $table
ORDER BY column_index
