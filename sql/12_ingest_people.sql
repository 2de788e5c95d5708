-- grain: one user; sort_key and twin are a keyed hash of the user id, value_i and level_i positions in the plan
CREATE TABLE people (sort_key UBIGINT, twin UBIGINT, {columns})
