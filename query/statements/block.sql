-- The newest indexed block up to a final one: of the records about a block the newest one says whether it is indexed.
SELECT block, hash, ts
FROM (
  SELECT block, hash, ts, sign
  FROM records
  WHERE kind = 'block' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY kind DESC, block DESC, seq DESC
  LIMIT 1 BY block
)
WHERE sign > 0
LIMIT 1
