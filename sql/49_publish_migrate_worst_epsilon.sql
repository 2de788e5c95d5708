-- grain: the table; results of earlier versions lack the column
ALTER TABLE IF EXISTS releases ADD COLUMN IF NOT EXISTS worst_epsilon DOUBLE
