-- grain: that of items
INSERT INTO items SELECT unnest($names::VARCHAR[]), 0
