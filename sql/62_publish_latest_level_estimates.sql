-- grain: that of level_estimates, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_level_estimates AS
SELECT latest_releases.name, level_estimates.*
FROM level_estimates JOIN latest_releases USING (release_id)
