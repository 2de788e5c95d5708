-- grain: one row: whether any row with a user has a fault, and the kind of the first kind found
SELECT coalesce(min(fault), 0) FROM visits WHERE fault > 0
