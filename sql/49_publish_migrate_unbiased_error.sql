-- grain: the table; results of earlier versions lack the column, and what it takes to compute it
ALTER TABLE IF EXISTS histograms ADD COLUMN IF NOT EXISTS unbiased_standard_error DOUBLE
