-- grain: release × gate
CREATE TABLE IF NOT EXISTS validations (
    release_id VARCHAR NOT NULL, -- the release
    gate VARCHAR NOT NULL, -- short name
    sentence VARCHAR NOT NULL, -- what must hold
    passed BOOLEAN NOT NULL, -- whether it did
    observed DOUBLE NOT NULL, -- the worst figure seen
    bound DOUBLE NOT NULL, -- what it was compared with
    false_alarm DOUBLE NOT NULL -- the most probable a correct release is to fail this gate
)
