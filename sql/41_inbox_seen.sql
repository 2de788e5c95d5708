-- grain: one message of an earlier slot, by the keyed hash of its id
CREATE TABLE IF NOT EXISTS seen (key BLOB PRIMARY KEY) WITHOUT ROWID
