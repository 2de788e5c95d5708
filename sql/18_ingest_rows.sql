-- grain: one user, in the order of insertion, which is that of the keyed hash
SELECT * FROM people
