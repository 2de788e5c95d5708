-- grain: one run of the paper
UPDATE runs SET shown = list_contains($run_ids, run_id) WHERE paper = $paper
