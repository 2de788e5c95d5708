-- grain: one token
INSERT OR IGNORE INTO tokens VALUES (?)
