-- grain: one row of the source, every column as text
SELECT {cells}
FROM read_parquet($path)
