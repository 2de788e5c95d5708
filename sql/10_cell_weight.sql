-- grain: none; how much a cell says that an attribute matters: a number, or yes and no; null where it says neither
CREATE OR REPLACE TEMP MACRO cell_weight(cell) AS coalesce(TRY_CAST(cell AS DOUBLE), CAST(TRY_CAST(cell AS BOOLEAN) AS DOUBLE))
