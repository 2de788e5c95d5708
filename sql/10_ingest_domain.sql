-- grain: one declared domain; a cell outside it casts to null instead of raising an error that quotes it
CREATE TYPE {domain} AS ENUM ({values})
