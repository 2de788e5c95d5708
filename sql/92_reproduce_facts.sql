-- grain: paper × place × panel × series × x
CREATE TABLE IF NOT EXISTS facts (
    paper VARCHAR NOT NULL, -- the paper's short name
    place VARCHAR NOT NULL, -- the table or figure
    panel VARCHAR NOT NULL, -- part of it
    series VARCHAR NOT NULL, -- the method
    x VARCHAR NOT NULL, -- where on the axis, or the row
    printed DOUBLE NOT NULL, -- what the paper prints
    half_width DOUBLE NOT NULL, -- how exactly that can be read
    repeats BIGINT NOT NULL, -- over how many repetitions the paper averaged; 0 where the number is exact
    source VARCHAR NOT NULL, -- where in the paper it stands
    claim VARCHAR NOT NULL -- equals, or a bound: at most, at least
)
