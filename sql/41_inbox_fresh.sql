-- grain: one message of the newest few hundred, written anew in the order of keys with every batch
CREATE TABLE IF NOT EXISTS fresh (key BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID
