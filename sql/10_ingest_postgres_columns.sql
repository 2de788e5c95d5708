-- grain: none of the rows of a table of a PostgreSQL server; its columns
SELECT * FROM {table} LIMIT 0
