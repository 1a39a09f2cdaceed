-- Live rows of the list of blocks, newest first.
SELECT block, hash, ts
FROM lists
WHERE list = 'blocks' AND owner = toFixedString('', 20) AND scope = toFixedString('', 20) AND kind = 'none' AND {keys}
GROUP BY block, hash, ts
HAVING sum(sign) > 0
ORDER BY block DESC
LIMIT {limit:UInt64}
