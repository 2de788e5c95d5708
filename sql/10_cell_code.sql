-- grain: none; the position of a cell in a declared list of values, null where it is not in it
CREATE OR REPLACE TEMP MACRO {code}(cell) AS enum_code(TRY_CAST(cell AS {domain}))
