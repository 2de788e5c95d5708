-- grain: one row if these results have the macro
SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name = $macro
