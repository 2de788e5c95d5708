-- grain: one number: 1 where every message needs a token
PRAGMA user_version
