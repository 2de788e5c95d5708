-- grain: one reason; inputs: people, before those without a user id are left out
INSERT INTO quarantine SELECT 'NO USER ID', count(*) FROM people WHERE sort_key IS NULL
