-- grain: none; the database that holds the public catalogue, to read only
ATTACH {path} AS given (READ_ONLY)
