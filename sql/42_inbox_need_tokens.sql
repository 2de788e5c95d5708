-- grain: one setting: every message needs a token
PRAGMA user_version = 1
