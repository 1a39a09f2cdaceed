-- The live block records. Several records of one block count as one. A block that the generation skips is not listed.
SELECT block, argMaxIf(hash, seq, NOT passed) AS hash, argMaxIf(ts, seq, NOT passed) AS ts, NOT min(passed) AS listed
FROM events
WHERE record = 'block' AND sign = 1 AND seq <= {seq:UInt64}
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign = -1 AND seq <= {seq:UInt64})
GROUP BY block
