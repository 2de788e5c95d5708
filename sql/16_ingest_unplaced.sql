-- grain: one row: how many users have a cell that the spec declares no value for
SELECT count(*) FROM people WHERE {unplaced}
