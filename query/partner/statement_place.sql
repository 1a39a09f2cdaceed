-- Where a time range lies in the log. Only live block records up to a final block count. anchor is the first record
-- of the log after the range; later queries return the same one, because records appended later have higher seqs even
-- if they are about old blocks. begins is the first record in or after the range, and latest is the newest time.
SELECT max(ts) AS latest, minIf(seq, ts >= {from:Int64}) AS begins, minIf(seq, ts > {to:Int64}) AS anchor,
  argMinIf(block, seq, ts > {to:Int64}) AS number,
  argMinIf(hash, seq, ts > {to:Int64}) AS hash, argMinIf(ts, seq, ts > {to:Int64}) AS time
FROM events
WHERE record = 'block' AND sign > 0 AND NOT passed AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign < 0 AND seq <= {seq:UInt64})
