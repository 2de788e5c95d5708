-- grain: one message, by a keyed hash of its id; no row number tells the order
CREATE TABLE IF NOT EXISTS messages (key BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID
