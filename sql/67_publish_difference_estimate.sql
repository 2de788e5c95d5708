-- grain: one row: the share of one group of values minus that of another, of one attribute (docs/intervals.md, section 5)
CREATE OR REPLACE MACRO difference_estimate(
    wanted_release, -- a release id, or a name: its newest published release
    wanted_attribute,
    wanted_values, -- a list of declared values
    other_values, -- another, with no value of the first
    z := 1.959963984540054, -- half width of the interval in standard errors: 95 %
    population := false -- true: estimate the population that the users are a sample of
) AS TABLE
WITH first_group AS (
    SELECT DISTINCT unnest(wanted_values)::VARCHAR AS value
),
second_group AS (
    SELECT DISTINCT unnest(other_values)::VARCHAR AS value
),
-- Each group by itself says no to what does not exist, and which method goes with what is declared.
checked AS (
    SELECT a.method, a.n_values AS n_first, b.n_values AS n_second, a.n_reports
    FROM
        group_estimate(wanted_release, wanted_attribute, wanted_values) AS a,
        group_estimate(wanted_release, wanted_attribute, other_values) AS b
),
problem AS (
    SELECT CASE WHEN count(*) > 0
        THEN 'both groups have ' || string_agg(value, ', ' ORDER BY value) || ': nobody can be in both'
    END AS sentence
    FROM first_group JOIN second_group USING (value)
),
declared AS (
    SELECT coalesce(any_value(dependence), '1') <> '1' AS dependent
    FROM histograms JOIN chosen_release(wanted_release) USING (release_id)
    WHERE attribute = wanted_attribute
),
sums AS (
    SELECT
        a.n, a.own, a.other, a.n_declared, a.n_values AS g, b.n_values AS h,
        a.frequency - b.frequency AS difference,
        a.frequency + b.frequency AS together,
        a.base AS apart, -- two values that the person does not hold, and one that is the own
        a.slope + a.base AS tie
    FROM
        group_levels(wanted_release, wanted_attribute, wanted_values) AS a
        JOIN group_levels(wanted_release, wanted_attribute, other_values) AS b USING (level)
),
-- Noise of one report's difference: about a holder of the first group, of the second, of neither.
levels AS (
    SELECT
        n, difference, together, g / n_declared AS even_first, h / n_declared AS even_second,
        g + h = n_declared AS whole,
        sum(n) OVER () AS users,
        greatest(own + (g - 1 + h) * other - 2 * (g - 1 - h) * tie
            - ((g - 1) * (g - 2) + h * (h - 1) - 2 * (g - 1) * h) * apart, 0) AS first,
        greatest(own + (h - 1 + g) * other - 2 * (h - 1 - g) * tie
            - ((h - 1) * (h - 2) + g * (g - 1) - 2 * (h - 1) * g) * apart, 0) AS second,
        greatest((g + h) * other - (g * (g - 1) + h * (h - 1) - 2 * g * h) * apart, 0) AS neither
    FROM sums
),
-- As for groups: a first pass as if all values were alike, its shares for the weights, the estimate for the error.
first_pass AS (
    SELECT
        *,
        even_first * first + even_second * second + (1 - even_first - even_second) * neither AS noise,
        even_first + even_second - (even_first - even_second) ** 2 AS spread,
        n / (greatest(noise, 1e-200) + spread * users / greatest(users - 1, 1)) AS told
    FROM levels
),
pilot AS (
    SELECT
        1 / greatest(any_value(users), 2) AS edge,
        greatest(least(sum(told * difference) / sum(told), 1), -1) AS away,
        CASE WHEN any_value(whole) THEN 1
            ELSE greatest(least(sum(told * together) / sum(told), 1), abs(away), edge)
        END AS total
    FROM first_pass
),
raw AS (
    SELECT
        levels.*, method, dependent, n_first, n_second, n_reports, edge,
        greatest((total + away) / 2 * first + (total - away) / 2 * second + (1 - total) * neither, 1e-200) AS noise,
        CASE method
            WHEN 'sum' THEN n
            WHEN 'oc' THEN n / noise
            ELSE n / (noise + greatest(total - away ** 2, edge) * users / greatest(users - 1, 1))
        END AS weight
    FROM levels, pilot, checked, declared
),
weighted AS (
    SELECT * REPLACE (weight / sum(weight) OVER () AS weight) FROM raw
),
-- Where people's choices may depend on values, a test takes holders to be where they are noisiest; the error that stands
-- beside the estimate takes them to be everywhere, as that of a group and of a value do.
combined AS (
    SELECT
        sum(weight * difference) AS difference,
        greatest(least(sum(weight * difference), 1), -1) AS inside,
        CASE WHEN any_value(whole) THEN 1
            ELSE greatest(least(sum(weight * together), 1), abs(inside), any_value(edge))
        END AS total,
        sum(weight ** 2 / n * neither) AS c,
        sum(weight ** 2 / n * first) AS first_drawn,
        sum(weight ** 2 / n * second) AS second_drawn,
        CASE WHEN any_value(dependent) THEN c + max(first - neither) / any_value(users) ELSE first_drawn END AS a,
        CASE WHEN any_value(dependent) THEN c + max(second - neither) / any_value(users) ELSE second_drawn END AS b,
        any_value(users) / greatest(any_value(users) - 1, 1) * (
            sum((weight - n / users) ** 2 / n) + CASE WHEN population THEN 1 / any_value(users) ELSE 0 END
        ) AS uneven,
        any_value(n_first) AS n_first,
        any_value(n_second) AS n_second,
        any_value(n_reports) AS n_reports,
        any_value(method) AS method
    FROM weighted
),
-- σ²(D) = base + slope D − uneven D² while |D| is at most the total; beyond, the total is |D| itself, so that it is
-- c + (a − c + uneven) D − uneven D² for a large D, and the same with b for −D.
tests AS (
    SELECT
        *,
        (total + inside) / 2 * first_drawn + (total - inside) / 2 * second_drawn + (1 - total) * c
            + (total - inside ** 2) * uneven AS variance,
        total * (a + b) / 2 + (1 - total) * c + total * uneven AS base,
        greatest(least(difference, 1 + z * sqrt(a)), -1 - z * sqrt(b)) AS possible,
        1 + z ** 2 * uneven AS bent
    FROM combined
),
ends AS (
    SELECT
        *,
        possible + z ** 2 * (a - b) / 4 AS middle,
        -possible + z ** 2 * (b - a) / 4 AS negated,
        possible + z ** 2 * (a - c + uneven) / 2 AS middle_far,
        -possible + z ** 2 * (b - c + uneven) / 2 AS negated_far,
        (middle + sqrt(greatest(middle ** 2 - bent * (possible ** 2 - z ** 2 * base), 0))) / bent AS high,
        (negated + sqrt(greatest(negated ** 2 - bent * (possible ** 2 - z ** 2 * base), 0))) / bent AS low,
        (middle_far + sqrt(greatest(middle_far ** 2 - bent * (possible ** 2 - z ** 2 * c), 0))) / bent AS high_far,
        (negated_far + sqrt(greatest(negated_far ** 2 - bent * (possible ** 2 - z ** 2 * c), 0))) / bent AS low_far
    FROM tests
)
SELECT
    difference,
    sqrt(variance) AS standard_error,
    -least(CASE WHEN low <= total THEN low ELSE low_far END, 1) AS ci_low,
    least(CASE WHEN high <= total THEN high ELSE high_far END, 1) AS ci_high,
    n_first,
    n_second,
    n_reports,
    method
FROM ends, problem
WHERE CASE WHEN sentence IS NULL THEN true ELSE error(sentence) END
