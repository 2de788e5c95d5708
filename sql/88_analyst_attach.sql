-- grain: the results file, to be copied from
ATTACH {path} AS results (READ_ONLY)
