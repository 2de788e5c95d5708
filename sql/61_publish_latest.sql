-- grain: that of the table, for the newest published release of each name
CREATE OR REPLACE VIEW {view} AS
SELECT latest_releases.name, {table}.*
FROM {table} JOIN latest_releases USING (release_id)
