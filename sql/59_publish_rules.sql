-- grain: release × rule: a split of a frequent set
CREATE TABLE IF NOT EXISTS rules (
    release_id VARCHAR NOT NULL, -- the release
    antecedent VARCHAR[] NOT NULL, -- who holds these items …
    consequent VARCHAR[] NOT NULL, -- … holds these too
    support DOUBLE NOT NULL, -- estimated share of users who hold both
    confidence DOUBLE NOT NULL, -- estimated share of those with the antecedent who hold the consequent too; may exceed 1
    standard_error DOUBLE NOT NULL, -- of confidence, to first order
    ci_low DOUBLE NOT NULL, -- interval of confidence
    ci_high DOUBLE NOT NULL, -- upper end of the interval
    lift DOUBLE -- confidence over the consequent's support; null where that is less than three standard errors
)
