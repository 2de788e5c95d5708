-- grain: one row, present once the vault is complete
CREATE TABLE ingested AS SELECT count(*) AS n_users FROM people
