-- grain: one row: for every column the first readable row whose cell has no place in the plan, null where there is none
WITH cells AS ({source}),
positions AS (SELECT row_number() OVER () AS row, user_id, {positions} FROM cells)
SELECT {firsts} FROM positions
