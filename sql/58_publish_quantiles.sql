-- grain: release × numeric attribute × probability
CREATE TABLE IF NOT EXISTS quantiles (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR NOT NULL, -- what was asked
    probability DOUBLE NOT NULL, -- share of users at or below the quantile
    method VARCHAR NOT NULL, -- how the distribution behind it was estimated
    quantile DOUBLE NOT NULL, -- estimated quantile of the users of the release, in the attribute's units
    standard_error DOUBLE NOT NULL, -- of quantile: half the interval over its normal factor
    ci_low DOUBLE NOT NULL, -- interval of the quantile
    ci_high DOUBLE NOT NULL, -- upper end of the interval
    n_reports BIGINT NOT NULL -- reports behind it
)
