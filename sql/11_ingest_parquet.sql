-- grain: one row of the source; inputs: the file, every column read as text
WITH cells AS (
    SELECT {cells}
    FROM read_parquet($path)
)
SELECT {codes} FROM cells
