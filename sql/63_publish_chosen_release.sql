-- grain: one id: of the release with this id, else of the newest published one of this name
CREATE OR REPLACE MACRO chosen_release(wanted_release) AS (
    SELECT coalesce(
        max(release_id) FILTER (release_id = wanted_release),
        max(latest_releases.release_id) FILTER (releases.name = wanted_release)
    )
    FROM releases LEFT JOIN latest_releases USING (release_id)
)
