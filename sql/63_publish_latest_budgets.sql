-- grain: that of budgets, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_budgets AS
SELECT latest_releases.name, budgets.*
FROM budgets JOIN latest_releases USING (release_id)
