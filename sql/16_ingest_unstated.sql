-- grain: one reason why rows of a file state no choice; inputs: visits or stated, rows with a user
SELECT unstated, count(*) FROM {table} WHERE unstated > 0 GROUP BY unstated ORDER BY unstated
