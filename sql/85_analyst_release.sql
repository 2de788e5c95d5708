-- grain: one release: by its id, else the newest published one of a name, else its newest
SELECT release_id FROM releases
WHERE release_id = $wanted OR name = $wanted
ORDER BY release_id = $wanted DESC, status = 'published' DESC, created_at DESC, release_id
LIMIT 1
