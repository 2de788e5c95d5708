-- grain: one comparison of the paper
DELETE FROM comparisons WHERE paper = $paper
