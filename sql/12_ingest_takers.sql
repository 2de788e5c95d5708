-- grain: one user, in the order of a keyed hash of the user id; filled slice by slice
CREATE TABLE people (sort_key UBIGINT, twin UBIGINT, profile USMALLINT)
