-- grain: paper × place × panel × series × x
CREATE TABLE IF NOT EXISTS comparisons (
    paper VARCHAR NOT NULL, -- the paper's short name
    place VARCHAR NOT NULL, -- the table or figure
    panel VARCHAR NOT NULL, -- part of it
    series VARCHAR NOT NULL, -- the method
    x VARCHAR NOT NULL, -- where on the axis, or the row
    printed DOUBLE NOT NULL, -- what the paper prints
    value DOUBLE, -- ours; null where we have none
    standard_error DOUBLE, -- Monte Carlo error of ours
    verdict VARCHAR NOT NULL, -- agrees, differs (with a checked reason), or unexplained
    reason VARCHAR NOT NULL, -- key of the reason that was checked; empty if none
    basis VARCHAR -- of the reason: verified without the printed numbers, or inferred from them; null if none
)
