-- grain: one setting: a commit is on disk when it returns
PRAGMA synchronous = FULL
