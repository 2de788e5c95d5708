-- grain: one setting: what is deleted is overwritten
PRAGMA secure_delete = ON
