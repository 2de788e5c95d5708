-- grain: one row: the true quantiles of one number's codes, for evaluations only
SELECT quantile_disc({number}, $probabilities) AS codes FROM people
