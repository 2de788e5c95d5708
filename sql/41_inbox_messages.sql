-- grain: one message, by its random id; no row number tells the order
CREATE TABLE IF NOT EXISTS messages (id BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID
