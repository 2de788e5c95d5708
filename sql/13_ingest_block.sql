-- grain: one user of a block, already in the order of sort_key
INSERT INTO people SELECT * FROM block
