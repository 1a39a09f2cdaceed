-- The newest live block that the generation skips, after one block and up to another; 0 if there is none.
SELECT max(block)
FROM events
WHERE record = 'block' AND passed AND sign = 1 AND block > {after:UInt64} AND block <= {last:UInt64} AND seq <= {seq:UInt64}
  AND seq NOT IN (
    SELECT retracts
    FROM events
    WHERE record = 'block' AND sign = -1 AND block > {after:UInt64} AND block <= {last:UInt64} AND seq <= {seq:UInt64}
  )
