-- grain: that of validations, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_validations AS
SELECT latest_releases.name, validations.*
FROM validations JOIN latest_releases USING (release_id)
