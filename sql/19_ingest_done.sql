-- grain: one row, present once the vault and its partitions are complete; nobody reckons the partitions anew
CREATE TABLE ingested AS SELECT $n_users::BIGINT AS n_users, $partitions::BIGINT AS partitions
