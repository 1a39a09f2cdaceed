-- The newest block of the list of blocks, in a range of numbers.
SELECT block, ts
FROM lists
WHERE list = 'blocks' AND owner = toFixedString('', 20) AND scope = toFixedString('', 20) AND kind = 'none'
  AND key >= {from:UInt64} AND key <= {to:UInt64}
GROUP BY block, hash, ts
HAVING sum(sign) > 0
ORDER BY block DESC
LIMIT 1
