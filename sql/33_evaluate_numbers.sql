-- grain: one user, in the order of a keyed hash: level, codes and weights of the first $users, for evaluations only
SELECT level_0 AS level, {numbers} FROM people ORDER BY sort_key, twin LIMIT $users
