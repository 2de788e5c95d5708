-- grain: that of quantiles, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_quantiles AS
SELECT latest_releases.name, quantiles.*
FROM quantiles JOIN latest_releases USING (release_id)
