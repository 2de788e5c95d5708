-- grain: one row of the source, every column as text
SELECT {cells}
FROM read_parquet($path, hive_partitioning = false) -- a folder named level=low says nothing of the people in it
