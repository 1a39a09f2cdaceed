-- The newest live block record: how far the chain is indexed, and what time it
-- is there. It looks at the last records only; where a reorganisation took all
-- of them back, the caller asks again with a larger scan.
WITH (
  SELECT min(block) FROM (
    SELECT block FROM {db:Identifier}.records
    WHERE kind = 'block' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    ORDER BY block DESC LIMIT {scan:UInt64}
  )
) AS lowest
SELECT block, ts
FROM {db:Identifier}.records
WHERE kind = 'block' AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND block >= lowest
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.records
    WHERE kind = 'block' AND sign = -1 AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND block >= lowest)
ORDER BY block DESC LIMIT 1
