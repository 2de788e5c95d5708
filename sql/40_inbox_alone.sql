-- grain: one setting: one process reads and writes, so nothing is shared beside the log
PRAGMA locking_mode = EXCLUSIVE
