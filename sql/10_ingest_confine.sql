-- grain: none; from here on nothing is read but what is attached, whatever an attached database says
SET enable_external_access = false
