-- grain: one finished piece of a paper's experiments
CREATE TABLE IF NOT EXISTS runs (
    run_id VARCHAR PRIMARY KEY, -- identity: paper, experiment, arguments, data, repeats, seed, code
    paper VARCHAR NOT NULL, -- the paper's short name
    experiment VARCHAR NOT NULL, -- which of its experiments
    arguments VARCHAR NOT NULL, -- JSON
    dataset VARCHAR, -- name of the data set; null if none
    repeats BIGINT NOT NULL, -- repetitions
    seed BIGINT NOT NULL, -- of the simulation
    code_version VARCHAR NOT NULL, -- hash of the modules that computed it
    seconds DOUBLE NOT NULL, -- how long it took
    finished_at TIMESTAMP NOT NULL, -- UTC
    shown BOOLEAN NOT NULL -- whether the paper's page is made of it
)
