-- grain: the column; results of earlier versions lack it
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column}
