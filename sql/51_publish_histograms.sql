-- grain: release × attribute × value
CREATE TABLE IF NOT EXISTS histograms (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR NOT NULL, -- what was asked
    value VARCHAR NOT NULL, -- one of the declared values
    method VARCHAR NOT NULL, -- how levels were combined, after any fallback
    postprocess VARCHAR NOT NULL, -- what was done to the combined estimate
    frequency DOUBLE NOT NULL, -- estimated share of the users of the release
    standard_error DOUBLE NOT NULL, -- of frequency alone; a bootstrap's root mean squared error where frequency is biased
    ci_low DOUBLE NOT NULL, -- interval of the unbiased estimate, cut to [0, 1]
    ci_high DOUBLE NOT NULL, -- upper end of the interval
    count DOUBLE NOT NULL, -- frequency times the number of users
    unbiased_frequency DOUBLE NOT NULL, -- before post-processing; may be negative
    n_reports BIGINT NOT NULL, -- reports behind it
    reliable BOOLEAN NOT NULL, -- whether the unbiased frequency exceeds three standard errors
    unbiased_standard_error DOUBLE -- of unbiased_frequency; null in releases of versions before 0.3.0
)
