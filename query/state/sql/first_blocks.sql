-- The first rows of the list of blocks, in its order; pairs of rows that cancel each other are among them.
SELECT block, sign
FROM lists
WHERE list = 'blocks'
ORDER BY list, owner, scope, kind, key, block, log_index, sub, user
LIMIT {few:UInt64}
