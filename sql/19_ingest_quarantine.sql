-- grain: one file and reason why rows of it were left out
SELECT file, reason, n_rows, of_rows FROM quarantine WHERE n_rows > 0 ORDER BY file, reason
