-- grain: one column of choices and reason why cells of it state none (1 empty, 2 not declared); never leaves the vault
CREATE TABLE unstated (column_name VARCHAR, reason UTINYINT, n_cells BIGINT, becomes VARCHAR)
