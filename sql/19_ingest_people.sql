-- grain: one user, over the partitions, which are the only place where users are stored; in the order of a keyed hash
CREATE VIEW people AS SELECT * FROM read_parquet({files}, hive_partitioning = false)
