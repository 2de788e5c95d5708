-- grain: one setting: commits go to a log, one sync each
PRAGMA journal_mode = WAL
