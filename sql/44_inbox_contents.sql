-- grain: one message, in the order of random ids
SELECT content FROM messages ORDER BY id
