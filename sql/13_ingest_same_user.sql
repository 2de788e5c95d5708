-- grain: one row: how many rows too many users have; inputs: rows, of users who may be the same
SELECT count(*) - count(DISTINCT user_id) FROM rows
