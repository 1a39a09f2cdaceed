-- Where in the log a time range lies. Only live block records count, up to a final block. anchor is the first record of
-- the log after the range; a later answer gives the same one, for what is appended later has higher seqs, also about
-- old blocks. begins is the first record in or after the range, below the newest block before it, latest the newest time.
SELECT max(ts) AS latest, maxIf(block, ts < {from:Int64}) AS below, minIf(seq, ts >= {from:Int64}) AS begins,
  minIf(seq, ts > {to:Int64}) AS anchor, argMinIf(block, seq, ts > {to:Int64}) AS number,
  argMinIf(hash, seq, ts > {to:Int64}) AS hash, argMinIf(ts, seq, ts > {to:Int64}) AS time
FROM events
WHERE record = 'block' AND sign > 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign < 0 AND seq <= {seq:UInt64})
