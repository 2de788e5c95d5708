-- grain: that of quarantine
INSERT INTO quarantine VALUES ($file, $reason, $n, $of)
