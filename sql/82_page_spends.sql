-- grain: release × unit, the most that one of it can have spent
SELECT release_id, unit, worst_epsilon AS spent FROM spends ORDER BY rowid
