-- grain: one row: the first readable row of the source with such a cell, and every cell's position in it
WITH cells AS ({source}),
positions AS (SELECT row_number() OVER () AS position, {positions} FROM cells)
SELECT position, {names} FROM positions WHERE least({names}) < 0 ORDER BY position LIMIT 1
