-- grain: one row per level: what it estimates of a group of values, and what one report's noise is there
CREATE OR REPLACE MACRO group_levels(wanted_release, wanted_attribute, wanted_values) AS TABLE
SELECT
    level,
    any_value(n_reports)::DOUBLE AS n,
    sum(frequency) FILTER (wanted) AS frequency,
    count(*) FILTER (wanted) AS n_values,
    count(*) AS n_declared,
    -- Results of earlier versions know only mechanisms whose noise is the same at every value and independent between.
    any_value(noise_own) IS NOT NULL AS known,
    any_value(n_reports) * avg(standard_error ** 2) AS alike,
    coalesce(any_value(noise_own), alike) AS own,
    coalesce(any_value(noise_other), alike) AS other,
    coalesce(any_value(covariance_slope), 0) AS slope,
    coalesce(any_value(covariance_base), 0) AS base
FROM (
    SELECT level_estimates.*, list_contains(wanted_values::VARCHAR[], value) AS wanted
    FROM level_estimates JOIN chosen_release(wanted_release) USING (release_id)
    WHERE attribute = wanted_attribute
) JOIN budgets USING (release_id, attribute, level)
GROUP BY level
