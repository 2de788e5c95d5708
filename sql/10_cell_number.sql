-- grain: none; the number that a cell holds, null where it holds none; the database takes nan and inf for numbers
CREATE OR REPLACE TEMP MACRO cell_number(cell) AS CASE WHEN isfinite(TRY_CAST(cell AS DOUBLE)) THEN TRY_CAST(cell AS DOUBLE) END
