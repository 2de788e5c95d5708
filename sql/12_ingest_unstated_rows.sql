-- grain: that of unstated
INSERT INTO unstated VALUES ($column, $reason, $n, $becomes)
