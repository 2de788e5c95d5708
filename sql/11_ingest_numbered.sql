-- grain: one readable row, numbered as it stands in the source; inputs: cells
SELECT row_number() OVER () AS "row", * FROM cells
