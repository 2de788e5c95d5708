-- grain: one row; fails where the vault is not complete
SELECT n_users, partitions FROM ingested
