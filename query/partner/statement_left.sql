-- The newest block in the log when a vault left it. Only live block records count.
SELECT block, ts
FROM events
WHERE record = 'block' AND sign > 0 AND NOT passed AND seq < {left:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign < 0 AND seq <= {seq:UInt64})
ORDER BY block DESC, seq DESC
LIMIT 1
