-- grain: release × item set: every declared item, and every longer set that may be frequent
CREATE TABLE IF NOT EXISTS itemsets (
    release_id VARCHAR NOT NULL, -- the release
    items VARCHAR[] NOT NULL, -- the items of the set, in the order of their declaration
    length BIGINT NOT NULL, -- how many they are
    support DOUBLE NOT NULL, -- estimated share of users who hold them all, unbiased; may be negative
    standard_error DOUBLE NOT NULL, -- of support
    ci_low DOUBLE NOT NULL, -- interval of support
    ci_high DOUBLE NOT NULL, -- upper end of the interval
    probability_frequent DOUBLE NOT NULL, -- chance that the true support reaches the spec's minimum, this set alone considered
    n_users BIGINT NOT NULL -- users of the release, those without items too
)
