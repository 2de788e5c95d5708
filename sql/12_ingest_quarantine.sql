-- grain: one reason why rows could not be used; reasons and counts never leave the vault
CREATE TABLE quarantine (reason VARCHAR, n_rows BIGINT)
