-- grain: release × numeric attribute × bin, for attributes with quantiles
CREATE TABLE IF NOT EXISTS bins (
    release_id VARCHAR NOT NULL, -- the release
    attribute VARCHAR NOT NULL, -- what was asked
    bin_low DOUBLE NOT NULL, -- lower edge
    bin_high DOUBLE NOT NULL, -- upper edge
    method VARCHAR NOT NULL, -- how the distribution was estimated
    frequency DOUBLE NOT NULL, -- estimated share of the users of the release in the bin
    standard_error DOUBLE NOT NULL, -- of frequency, bias included; bins next to each other are not independent
    n_reports BIGINT NOT NULL -- reports behind it
)
