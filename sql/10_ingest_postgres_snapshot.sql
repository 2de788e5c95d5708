-- grain: none; a transaction of a PostgreSQL server sees one state of the table from its first query to its last, and
-- can change nothing
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY
