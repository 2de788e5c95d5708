-- grain: that of level_shares, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_level_shares AS
SELECT latest_releases.name, level_shares.*
FROM level_shares JOIN latest_releases USING (release_id)
