-- Of each of some blocks the time, 0 where no record of it is live, and between which
-- seqs its logs are, taken back or not; 0 for none. Of a block the newest record
-- decides (newestLive in snapshot.go).
SELECT r.block AS block, if(argMaxIf(sign, seq, kind = 'block') > 0, argMaxIf(r.ts, seq, kind = 'block'), 0) AS time,
  minIf(seq, kind = 'log') AS low, maxIf(seq, kind = 'log') AS high
FROM {db:Identifier}.records AS r
WHERE kind IN ('log', 'block') AND sign != 0 AND r.block >= {from:UInt64} AND r.block <= {to:UInt64} AND seq <= {seq:UInt64}
GROUP BY block
ORDER BY block
{{template "by_row"}}
