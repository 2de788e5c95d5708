-- grain: the table; results of earlier versions lack the column
ALTER TABLE IF EXISTS budgets ADD COLUMN IF NOT EXISTS provider VARCHAR
