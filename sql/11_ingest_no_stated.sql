-- grain: that of stated, where no users file is given
CREATE TABLE stated (sort_key UBIGINT, twin UBIGINT, profile USMALLINT, unstated UTINYINT)
