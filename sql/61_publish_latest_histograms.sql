-- grain: that of histograms, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_histograms AS
SELECT latest_releases.name, histograms.*
FROM histograms JOIN latest_releases USING (release_id)
