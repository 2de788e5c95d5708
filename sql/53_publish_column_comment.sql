-- grain: the column's comment
COMMENT ON COLUMN {table}.{column} IS {comment}
