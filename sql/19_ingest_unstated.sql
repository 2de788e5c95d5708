-- grain: one column of choices and reason why cells of it state none
SELECT column_name, reason, n_cells, becomes FROM unstated WHERE n_cells > 0 ORDER BY column_name, reason
