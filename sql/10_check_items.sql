-- grain: one declared item
CREATE TABLE items (name VARCHAR, position BIGINT)
