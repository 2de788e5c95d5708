-- grain: one row per level and value of an attribute: its estimate, and one report's noise at values and between them
CREATE OR REPLACE MACRO level_cells(wanted_release, wanted_attribute) AS TABLE
SELECT
    level, value, n_reports, frequency, standard_error,
    noise_own, noise_other, covariance_slope AS slope, covariance_base AS base
FROM level_estimates JOIN budgets USING (release_id, attribute, level)
WHERE release_id = chosen_release(wanted_release) AND attribute = wanted_attribute
