-- grain: one row: the summed share of a group of values of one attribute (docs/methods.md, Groups of values)
CREATE OR REPLACE MACRO group_estimate(
    wanted_release, -- a release id, or a name: its newest published release
    wanted_attribute,
    wanted_values, -- a list of declared values
    z := 1.959963984540054, -- half width of the interval in standard errors: 95 %
    population := false -- true: estimate the population that the users are a sample of
) AS TABLE
WITH wanted AS (
    SELECT DISTINCT unnest(wanted_values)::VARCHAR AS value
),
chosen AS (
    SELECT coalesce(
        (SELECT release_id FROM releases WHERE release_id = wanted_release),
        (SELECT release_id FROM latest_releases WHERE name = wanted_release)
    ) AS release_id
),
cells AS (
    SELECT level_estimates.*
    FROM level_estimates JOIN chosen USING (release_id)
    WHERE attribute = wanted_attribute
),
unknown AS (
    SELECT coalesce(string_agg(coalesce(value, 'NULL'), ', ' ORDER BY value), '') AS names, count(*) AS n
    FROM wanted ANTI JOIN cells USING (value)
),
-- A misspelt value must not be left out of the sum in silence.
problem AS (
    SELECT CASE
        WHEN (SELECT release_id FROM chosen) IS NULL
            THEN 'no release "' || coalesce(wanted_release, 'NULL') || '" in these results'
        WHEN NOT EXISTS (FROM cells)
            THEN 'release ' || (SELECT release_id FROM chosen) || ' has no level estimates of an attribute "'
                || coalesce(wanted_attribute, 'NULL') || '"'
        WHEN NOT EXISTS (FROM wanted) THEN 'a group needs at least one value'
        WHEN (SELECT n FROM unknown) > 0
            THEN 'attribute "' || wanted_attribute || '" has no value ' || (SELECT names FROM unknown)
    END AS sentence
),
-- What one report's noise is at values and between them; results of earlier versions know only mechanisms whose noise
-- is the same at every value and independent between them.
moments AS (
    SELECT level, noise_own, noise_other, covariance_slope AS slope, covariance_base AS base
    FROM budgets JOIN chosen USING (release_id)
    WHERE attribute = wanted_attribute
),
sums AS (
    SELECT
        level,
        any_value(n_reports)::DOUBLE AS n,
        sum(frequency) AS frequency,
        greatest(least(sum(frequency), 1), 0) AS share,
        any_value(n_reports) * avg(standard_error ** 2) AS noise,
        count(*) AS n_values
    FROM cells JOIN wanted USING (value)
    GROUP BY level
),
-- A user who holds one of the group's values, and any other (pldp/groups.py).
groups AS (
    SELECT
        sums.*,
        coalesce(noise_own, noise) AS own,
        coalesce(noise_other, noise) AS other,
        coalesce(slope, 0) + coalesce(base, 0) AS tie,
        own + (n_values - 1) * (other - 2 * tie - (n_values - 2) * coalesce(base, 0)) AS member,
        n_values * (other - (n_values - 1) * coalesce(base, 0)) AS stranger,
        n_values = (SELECT count(DISTINCT value) FROM cells) AS everybody
    FROM sums JOIN moments USING (level)
),
levels AS (
    SELECT
        n,
        frequency,
        n_values,
        greatest(CASE WHEN everybody THEN member ELSE share * member + (1 - share) * stranger END, 1e-200) AS noise
    FROM groups
),
applied AS (
    SELECT CASE WHEN any_value(method) IN ('sum', 'oc') THEN any_value(method) ELSE 'oc+' END AS method
    FROM histograms JOIN chosen USING (release_id)
    WHERE attribute = wanted_attribute
),
-- Shares that decide spreads stay one user away from 0 and 1, as in pldp/combine.py.
pilot AS (
    SELECT
        sum(n) AS users,
        1 / greatest(sum(n), 2) AS edge,
        greatest(least(sum(n / noise * frequency) / sum(n / noise), 1 - edge), edge) AS share
    FROM levels
),
raw AS (
    SELECT n, frequency, noise, n_values, method, users, edge, CASE method
        WHEN 'sum' THEN n
        WHEN 'oc' THEN n / noise
        ELSE n / (noise + share * (1 - share) * users / greatest(users - 1, 1))
    END AS weight
    FROM levels, applied, pilot
),
weighted AS (
    SELECT * REPLACE (weight / sum(weight) OVER () AS weight) FROM raw
),
combined AS (
    SELECT
        sum(weight * frequency) AS frequency,
        sum(weight ** 2 * noise / n) AS drawn,
        sum((weight - n / users) ** 2 / n) AS uneven,
        any_value(users) AS users,
        any_value(edge) AS edge,
        any_value(n_values) AS n_values,
        any_value(method) AS method
    FROM weighted
),
spreads AS (
    SELECT
        *,
        users / greatest(users - 1, 1) AS finite,
        greatest(least(frequency, 1 - edge), edge) AS inside,
        greatest(least(frequency, 1), 0) AS clipped,
        inside * (1 - inside) * finite AS spread,
        CASE WHEN population THEN clipped * (1 - clipped) * finite / users ELSE 0 END AS beyond
    FROM combined
),
erring AS (
    SELECT *, sqrt(drawn + spread * uneven + beyond) AS standard_error FROM spreads
)
SELECT
    frequency,
    standard_error,
    greatest(least(frequency - z * standard_error, 1), 0) AS ci_low,
    greatest(least(frequency + z * standard_error, 1), 0) AS ci_high,
    n_values,
    users::BIGINT AS n_reports,
    method
FROM erring, problem
WHERE CASE WHEN sentence IS NULL THEN true ELSE error(sentence) END
