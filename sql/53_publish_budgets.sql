-- grain: release × attribute × level (× provider in a release of aggregates)
CREATE TABLE IF NOT EXISTS budgets (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR NOT NULL, -- what was asked
    level VARCHAR NOT NULL, -- the level
    unit VARCHAR NOT NULL, -- what the budget protects: a user, an item or an occurrence; different units are never added
    mechanism VARCHAR NOT NULL, -- the protocol that spends the budget
    nominal_epsilon DOUBLE NOT NULL, -- the budget
    exact_epsilon DOUBLE NOT NULL, -- exact worst case of the realised probabilities, rounded up
    level_leak DOUBLE, -- the most that this report and that about the level tell about it; null where levels are public
    share DOUBLE NOT NULL, -- the attribute's share of the total budget
    n_users BIGINT, -- users at this level; null where levels are hidden
    noise_own DOUBLE, -- variance of one report's estimate at the user's own value
    noise_other DOUBLE, -- the same at any other value
    covariance_slope DOUBLE, -- s: values with shares f, g have noise covariance -(s (f + g) + b) in one report
    covariance_base DOUBLE, -- b; both are zero where a mechanism perturbs every value on its own
    provider VARCHAR -- who gets the reports, in a release of aggregates, where the level is a profile; null elsewhere
)
