-- grain: one message of an earlier slot
INSERT OR IGNORE INTO seen VALUES (?)
