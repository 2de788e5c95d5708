-- grain: one reason; inputs: visits, before those without a user id are left out
INSERT INTO quarantine SELECT 'NO USER ID', count(*) FROM visits WHERE sort_key IS NULL
