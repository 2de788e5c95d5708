-- grain: one reason why rows could not be used; reasons and counts never leave the vault
CREATE TABLE quarantine AS
SELECT 'NO USER ID' AS reason, count(*) AS n_rows FROM visits WHERE sort_key IS NULL
