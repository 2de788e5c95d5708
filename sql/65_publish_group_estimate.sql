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
    FROM chosen_release(wanted_release)
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
-- What there is to ask for, for whoever asked for something else.
asked AS (
    SELECT list(DISTINCT attribute ORDER BY attribute) AS attributes
    FROM level_estimates JOIN chosen USING (release_id)
),
declared AS (
    SELECT list(DISTINCT value ORDER BY value) AS members FROM cells
),
-- A misspelt value must not be left out of the sum in silence.
problem AS (
    SELECT CASE
        WHEN found.release_id IS NULL
            THEN 'no release "' || coalesce(wanted_release, 'NULL') || '" in these results'
        WHEN n_cells = 0
            THEN 'release ' || found.release_id || ' has no level estimates of an attribute "'
                || coalesce(wanted_attribute, 'NULL') || CASE
                    WHEN attributes IS NULL THEN '": it has none of any, because its levels are hidden or its kind is another'
                    ELSE '", only of ' || array_to_string(attributes[:40], ', ')
                        || CASE WHEN len(attributes) > 40 THEN ' and ' || (len(attributes) - 40) || ' more' ELSE '' END
                END
        WHEN n_wanted = 0 THEN 'a group needs at least one value'
        WHEN unknown.n > 0 THEN 'attribute "' || wanted_attribute || '" has no value ' || unknown.names || ', only '
            || array_to_string(members[:40], ', ')
            || CASE WHEN len(members) > 40 THEN ' and ' || (len(members) - 40) || ' more' ELSE '' END
    END AS sentence
    -- Joined, not asked one by one: in a LATERAL join each has a row a group, which no single value can stand for.
    FROM
        (SELECT max(release_id) AS release_id FROM chosen) AS found,
        (SELECT count(*) AS n_cells FROM cells),
        (SELECT count(*) AS n_wanted FROM wanted),
        unknown, asked, declared
),
-- A user who holds one of the group's values, and any other.
groups AS (
    SELECT
        *,
        slope + base AS tie,
        own + (n_values - 1) * (other - 2 * tie - (n_values - 2) * base) AS member,
        n_values * (other - (n_values - 1) * base) AS stranger,
        n_values / n_declared AS even
    FROM group_levels(wanted_release, wanted_attribute, wanted_values)
),
-- Nobody is outside a group of all values. No noise at all may come out a little below zero.
levels AS (
    SELECT
        n, frequency, n_values, even,
        greatest(member, 0) AS member,
        greatest(CASE WHEN n_values = n_declared THEN member ELSE stranger END, 0) AS stranger
    FROM groups
),
-- Weights by precision are right where choices do not depend on values; else levels weigh by their people, which keeps
-- any cap on weights too.
applied AS (
    SELECT
        CASE
            WHEN coalesce(any_value(dependence), '1') <> '1' OR any_value(level_weight_cap) IS NOT NULL THEN 'sum'
            WHEN any_value(method) IN ('sum', 'oc') THEN any_value(method)
            ELSE 'oc+'
        END AS method,
        coalesce(any_value(dependence), '1') <> '1' AS dependent
    FROM histograms JOIN chosen USING (release_id)
    WHERE attribute = wanted_attribute
),
-- Shares that decide noise and spreads are those of pldp/estimate/combine.py: values alike for the first pass, then its
-- estimate for the weights, then the estimate for the error; these two stay one user away from 0 and 1.
everybody AS (
    SELECT *, sum(n) OVER () AS users FROM levels
),
first_pass AS (
    SELECT
        *,
        greatest(even * member + (1 - even) * stranger, 1e-200) AS noise,
        n / (noise + even * (1 - even) * users / greatest(users - 1, 1)) AS told
    FROM everybody
),
pilot AS (
    SELECT
        any_value(users) AS users,
        1 / greatest(any_value(users), 2) AS edge,
        greatest(least(sum(told * frequency) / sum(told), 1 - edge), edge) AS share
    FROM first_pass
),
raw AS (
    SELECT
        n, frequency, member, stranger, n_values, method, dependent, users, edge,
        greatest(share * member + (1 - share) * stranger, 1e-200) AS noise,
        CASE method
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
        any_value(users) AS users,
        any_value(n_values) AS n_values,
        any_value(method) AS method,
        any_value(dependent) AS dependent,
        max(member - stranger) AS most_gained,
        greatest(least(sum(weight * frequency), 1 - any_value(edge)), any_value(edge)) AS inside,
        sum(weight ** 2 / n * member) AS members_drawn,
        sum(weight ** 2 / n * stranger) AS strangers_drawn,
        sum(weight ** 2 / n * 1e-200) AS least_drawn,
        sum((weight - n / users) ** 2 / n) AS uneven
    FROM weighted
),
spreads AS (
    SELECT
        *,
        greatest(inside * members_drawn + (1 - inside) * strangers_drawn, least_drawn) AS drawn,
        users / greatest(users - 1, 1) AS finite,
        greatest(least(frequency, 1), 0) AS clipped,
        inside * (1 - inside) * finite AS spread,
        CASE WHEN population THEN clipped * (1 - clipped) * finite / users ELSE 0 END AS beyond
    FROM combined
),
-- Every share F is tested with the noise that it would have, base + slope F − bend F²; what is not rejected lies between
-- the roots of (estimate − F)² = z² (base + slope F − bend F²) (docs/intervals.md, section 5). Where the members of the
-- group may be at any level they are taken to be where they are noisiest.
noises AS (
    SELECT
        *,
        sqrt(drawn + spread * uneven + beyond) AS standard_error,
        finite * (CASE WHEN population THEN uneven + 1 / users ELSE uneven END) AS bend,
        strangers_drawn AS base,
        CASE WHEN dependent THEN most_gained / users ELSE members_drawn - strangers_drawn END + bend AS slope,
        greatest(least(frequency, 1 + z * sqrt(greatest(base + slope - bend, 0))), -z * sqrt(base)) AS possible
    FROM spreads
),
roots AS (
    SELECT
        *,
        1 + z ** 2 * bend AS a,
        possible + z ** 2 * slope / 2 AS b,
        sqrt(greatest(b ** 2 - a * (possible ** 2 - z ** 2 * base), 0)) AS root
    FROM noises
)
SELECT
    frequency,
    standard_error,
    greatest(least((b - root) / a, 1), 0) AS ci_low,
    greatest(least((b + root) / a, 1), 0) AS ci_high,
    n_values,
    users::BIGINT AS n_reports,
    method
FROM roots, problem
WHERE CASE WHEN sentence IS NULL THEN true ELSE error(sentence) END
