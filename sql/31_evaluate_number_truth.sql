-- grain: one row: sums of the codes of every number, for evaluations only
SELECT count(*)::BIGINT AS n, {sums} FROM people
