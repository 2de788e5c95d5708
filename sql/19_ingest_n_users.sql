-- grain: one row; fails where the vault is not complete
SELECT n_users FROM ingested
