-- grain: that of bins, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_bins AS
SELECT latest_releases.name, bins.*
FROM bins JOIN latest_releases USING (release_id)
