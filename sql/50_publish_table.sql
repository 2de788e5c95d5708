-- grain: the table, as pldp/tables declares it
CREATE TABLE IF NOT EXISTS {table} ({columns})
