-- grain: release × numeric attribute
CREATE TABLE IF NOT EXISTS means (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR NOT NULL, -- what was asked
    method VARCHAR NOT NULL, -- how reports were averaged, after any fallback
    mean DOUBLE NOT NULL, -- estimated mean over the users of the release, in the attribute's units; may lie beyond the bounds
    standard_error DOUBLE NOT NULL, -- of mean
    ci_low DOUBLE NOT NULL, -- interval of the mean, cut to the bounds
    ci_high DOUBLE NOT NULL, -- upper end of the interval
    n_reports BIGINT NOT NULL, -- reports behind it: every user reports on some attributes only
    lower DOUBLE NOT NULL, -- declared lower bound; values below it count as the bound
    upper DOUBLE NOT NULL -- declared upper bound
)
