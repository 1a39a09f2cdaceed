-- The newest live block record: how far the chain is indexed, and what time it
-- is there.
SELECT block, ts
FROM {db:Identifier}.records
WHERE kind = 'block' AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.records WHERE kind = 'block' AND sign = -1 AND seq <= {seq:UInt64} AND block <= {block:UInt64})
ORDER BY block DESC LIMIT 1
