-- grain: the table's comment: what one row is about
COMMENT ON TABLE {table} IS {comment}
