-- grain: one finished run
SELECT run_id FROM runs WHERE list_contains($run_ids, run_id)
