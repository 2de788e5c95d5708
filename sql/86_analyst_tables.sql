-- grain: one published table
SELECT DISTINCT table_name FROM duckdb_columns()
JOIN duckdb_tables() USING (table_oid, table_name)
WHERE column_name = 'release_id'
ORDER BY table_name
