-- grain: one row of the public catalogue, as text, numbered as it stands in the file
SELECT row_number() OVER () AS position, * FROM ({source})
