-- grain: one release, newest first
SELECT * FROM releases ORDER BY created_at DESC, release_id
