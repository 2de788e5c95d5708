-- grain: none; the database that holds the table, to read only; of another kind it would load an extension
ATTACH {path} AS given (TYPE duckdb, READ_ONLY)
