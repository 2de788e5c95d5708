-- grain: one row: how many users of a slice have no item
SELECT count(*) FROM people ANTI JOIN visits
ON visits.sort_key = people.sort_key AND visits.twin = people.twin AND visits.item IS NOT NULL
AND visits.sort_key BETWEEN $first AND $last
WHERE people.sort_key BETWEEN $first AND $last
