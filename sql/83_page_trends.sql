-- grain: name × attribute × value × release, for the newest published releases of each name ($releases of them)
-- and, of each attribute, the largest values in the newest release that has it ($values of them)
WITH recent AS (
    SELECT
        release_id, name, created_at,
        row_number() OVER (PARTITION BY name ORDER BY created_at DESC, release_id) AS age
    FROM releases
    WHERE status = 'published'
    QUALIFY age <= $releases
),
newest AS (
    SELECT recent.name, histograms.attribute, min(recent.age) AS age
    FROM histograms
    JOIN recent USING (release_id)
    GROUP BY recent.name, histograms.attribute
),
largest AS (
    SELECT
        newest.name, newest.attribute, histograms.value,
        row_number() OVER (
            PARTITION BY newest.name, newest.attribute ORDER BY histograms.frequency DESC, histograms.value
        ) AS place
    FROM newest
    JOIN recent USING (name, age)
    JOIN histograms USING (release_id, attribute)
    QUALIFY place <= $values
)
SELECT
    recent.name, histograms.attribute, histograms.value, largest.place,
    recent.release_id, recent.created_at, histograms.frequency, histograms.standard_error,
    histograms.ci_low, histograms.ci_high
FROM histograms
JOIN recent USING (release_id)
JOIN largest USING (name, attribute, value)
ORDER BY recent.name, histograms.attribute, recent.created_at, recent.release_id, largest.place
