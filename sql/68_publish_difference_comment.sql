-- grain: the macro's comment
COMMENT ON MACRO TABLE difference_estimate IS 'The share of one group of values of an attribute minus that of another, with its error: difference_estimate(release id or name, attribute, list of values, other list)'
