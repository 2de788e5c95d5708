-- grain: one reason; rows without a user id
INSERT INTO quarantine VALUES ('NO USER ID', $n_rows)
