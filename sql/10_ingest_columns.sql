-- grain: one column of a base table of the public catalogue's database, in the order of the table; no column of a view,
-- which may read any file that the operator can read
SELECT column_name
FROM duckdb_columns() JOIN duckdb_tables() USING (database_oid, table_oid)
WHERE duckdb_columns.database_name = 'given' AND duckdb_columns.schema_name = 'main'
    AND duckdb_columns.table_name = $table
ORDER BY column_index
