-- grain: one declared list of values; a cell outside it casts to null instead of raising an error that quotes it
CREATE OR REPLACE TEMP TYPE {domain} AS ENUM (SELECT unnest($values::VARCHAR[]))
