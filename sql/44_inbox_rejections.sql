-- grain: one reason
SELECT reason, n FROM rejected
