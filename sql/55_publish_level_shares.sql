-- grain: release × level (× attribute where each has a level of its own), where levels are hidden
CREATE TABLE IF NOT EXISTS level_shares (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR, -- whose level it is; null where one level rules all attributes
    level VARCHAR NOT NULL, -- the level
    share DOUBLE NOT NULL, -- estimated share of users who chose it, unbiased; may be negative
    standard_error DOUBLE NOT NULL -- of share
)
