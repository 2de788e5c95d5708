-- grain: one message of an earlier slot, if it is there
SELECT 1 FROM seen WHERE key = ?
