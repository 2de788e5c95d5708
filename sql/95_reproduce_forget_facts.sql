-- grain: one fact of the paper
DELETE FROM facts WHERE paper = $paper
