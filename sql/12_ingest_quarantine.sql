-- grain: one file and reason why rows of it could not be used; reasons and counts never leave the vault
CREATE TABLE quarantine (file VARCHAR, reason VARCHAR, n_rows BIGINT, of_rows BIGINT)
