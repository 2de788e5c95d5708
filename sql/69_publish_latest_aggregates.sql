-- grain: that of aggregates, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_aggregates AS
SELECT latest_releases.name, aggregates.*
FROM aggregates JOIN latest_releases USING (release_id)
