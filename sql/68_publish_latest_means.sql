-- grain: that of means, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_means AS
SELECT latest_releases.name, means.*
FROM means JOIN latest_releases USING (release_id)
