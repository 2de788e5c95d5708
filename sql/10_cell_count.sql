-- grain: none; the whole number that a cell holds beside an item, 0 where there is no item, null where it holds none
CREATE OR REPLACE TEMP MACRO cell_count(item, amount) AS
CASE
    WHEN item IS NULL THEN 0
    WHEN regexp_full_match(amount, '[0-9]{1,10}(\.0*)?') THEN CAST(split_part(amount, '.', 1) AS BIGINT)
END
