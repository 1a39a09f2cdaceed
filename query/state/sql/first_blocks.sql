-- The first rows of the list of blocks, in its order, including pairs of rows that cancel each other.
SELECT block, sign
FROM lists
WHERE list = 'blocks'
ORDER BY list, owner, scope, kind, key, block, log_index, sub, user
LIMIT {few:UInt64}
