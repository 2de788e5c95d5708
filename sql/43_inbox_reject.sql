-- grain: one reason
INSERT INTO rejected VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET n = n + excluded.n
