-- Rows of lists, including pairs that no merge has removed yet.
SELECT {columns}
FROM lists
WHERE {keys}
