-- grain: the macro's comment
COMMENT ON MACRO TABLE group_estimate IS 'The summed share of a group of values of one attribute, with its error: group_estimate(release id or name, attribute, list of values)'
