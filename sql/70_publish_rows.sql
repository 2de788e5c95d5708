-- grain: that of the table
INSERT INTO {table} BY NAME SELECT * FROM rows
