-- grain: one setting: the log is written back and emptied
PRAGMA wal_checkpoint(TRUNCATE)
