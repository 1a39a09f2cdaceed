-- The live block records. Several records of one block count as one.
SELECT block, argMax(hash, seq) AS hash, argMax(ts, seq) AS ts
FROM events
WHERE record = 'block' AND sign = 1 AND NOT passed AND seq <= {seq:UInt64}
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign = -1 AND seq <= {seq:UInt64})
GROUP BY block
