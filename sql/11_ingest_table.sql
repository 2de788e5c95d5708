-- grain: one row of the public catalogue's table, every column as text
SELECT {cells}
FROM given.main.{table}
