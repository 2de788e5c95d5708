-- grain: one release, published or refused
CREATE TABLE IF NOT EXISTS releases (
    release_id VARCHAR PRIMARY KEY, -- identity: spec, keyed snapshot of the source, schedule slot
    name VARCHAR NOT NULL, -- the spec's name; releases of one name form a series
    status VARCHAR NOT NULL, -- published, or refused because a gate failed
    created_at TIMESTAMP NOT NULL, -- when the release was first opened, UTC; always after the one of its name before it
    n_users BIGINT NOT NULL, -- how many users took part; public
    spec_sha256 VARCHAR NOT NULL, -- hash of the spec
    plan_sha256 VARCHAR NOT NULL, -- hash of the plan: budgets, mechanisms, thresholds
    code_version VARCHAR NOT NULL, -- version of pldp that made it
    worst_epsilon DOUBLE, -- the most that one user (or what protects says) can have spent on it; null before 0.3.0
    protects VARCHAR -- whom that budget protects: a user, an item or an occurrence; different ones are never added
)
