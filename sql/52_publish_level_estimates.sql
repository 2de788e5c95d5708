-- grain: release × attribute × level × value, where levels are public
CREATE TABLE IF NOT EXISTS level_estimates (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR NOT NULL, -- what was asked
    level VARCHAR NOT NULL, -- the level these users chose
    value VARCHAR NOT NULL, -- one of the declared values
    mechanism VARCHAR NOT NULL, -- the protocol that perturbed
    frequency DOUBLE NOT NULL, -- unbiased estimate of the share among this level's users; may be negative
    standard_error DOUBLE NOT NULL, -- of frequency
    n_reports BIGINT NOT NULL -- users at this level
)
