-- grain: that of rules, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_rules AS
SELECT latest_releases.name, rules.*
FROM rules JOIN latest_releases USING (release_id)
