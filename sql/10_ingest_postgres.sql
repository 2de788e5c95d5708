-- grain: one row of a table of a PostgreSQL server, the named columns as text
SELECT {columns} FROM {table}
