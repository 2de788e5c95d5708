-- grain: one release: by its id, else the newest of a name, published or refused
SELECT release_id FROM releases
WHERE release_id = $wanted OR name = $wanted
ORDER BY release_id = $wanted DESC, created_at DESC, release_id
LIMIT 1
