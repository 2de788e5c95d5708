-- grain: run × place × panel × series × x
CREATE TABLE IF NOT EXISTS points (
    run_id VARCHAR NOT NULL, -- the run that computed it
    place VARCHAR NOT NULL, -- the table or figure of the paper
    panel VARCHAR NOT NULL, -- part of it
    series VARCHAR NOT NULL, -- the method
    x VARCHAR NOT NULL, -- where on the axis, or the row
    value DOUBLE NOT NULL, -- ours
    standard_error DOUBLE NOT NULL, -- Monte Carlo error of the value; 0 where it is exact
    repeats BIGINT NOT NULL -- repetitions behind it
)
