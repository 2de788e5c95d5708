-- grain: one token that nobody has used yet, by its hash
CREATE TABLE IF NOT EXISTS tokens (hash BLOB PRIMARY KEY) WITHOUT ROWID
