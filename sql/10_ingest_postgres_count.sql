-- grain: one row: how many rows a table of a PostgreSQL server has
SELECT count(*) FROM {table}
