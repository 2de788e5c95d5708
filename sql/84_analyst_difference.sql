-- grain: one row: the difference of two groups of values, for the command
FROM difference_estimate($release, $attribute, $values, $others, z := $z, population := $population)
