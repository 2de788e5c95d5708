-- grain: release × provider × attribute
CREATE TABLE IF NOT EXISTS aggregates (
    release_id VARCHAR NOT NULL, -- the release
    provider VARCHAR NOT NULL, -- who got the reports behind it
    attribute VARCHAR NOT NULL, -- what items count for
    total DOUBLE NOT NULL, -- estimated sum over all users, unbiased; may be negative
    standard_error DOUBLE NOT NULL, -- of total; that of the noise
    ci_low DOUBLE NOT NULL, -- interval of total
    ci_high DOUBLE NOT NULL, -- upper end of the interval
    share DOUBLE, -- of the sum of all attributes' totals; null where that sum is less than three standard errors
    share_error DOUBLE, -- standard error of share, to first order
    n_users BIGINT NOT NULL -- users behind it, those without items too
)
