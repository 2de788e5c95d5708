-- grain: one user: level, codes and weights of the first $users in the order of the partitions, for evaluations only
SELECT level_0 AS level, {numbers} FROM people LIMIT $users
