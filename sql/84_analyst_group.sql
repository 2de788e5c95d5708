-- grain: one row: the share of a group of values, for the command
FROM group_estimate($release, $attribute, $values, z := $z, population := $population)
