-- grain: one row: the release that is wanted, by its id or by a name, whose newest published one it is then
CREATE OR REPLACE MACRO chosen_release(wanted_release) AS TABLE
SELECT coalesce(
    max(release_id) FILTER (release_id = wanted_release),
    max(release_id) FILTER (name = wanted_release AND newest)
) AS release_id
FROM (
    SELECT releases.release_id, releases.name, latest_releases.release_id IS NOT NULL AS newest
    FROM releases LEFT JOIN latest_releases USING (release_id)
)
