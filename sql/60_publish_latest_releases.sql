-- grain: one name: its newest published release
CREATE OR REPLACE VIEW latest_releases AS
SELECT * FROM releases
WHERE status = 'published'
QUALIFY row_number() OVER (PARTITION BY name ORDER BY created_at DESC, release_id DESC) = 1
