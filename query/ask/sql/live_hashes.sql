-- Of which blocks the logs of some heights are, by hash: of the rows at a place the newest one says which log is there.
SELECT block, log_index, hash
FROM (
  SELECT block, log_index, hash, sign
  FROM events
  WHERE record = 'log' AND sub = 0 AND block IN ({blocks}) AND seq <= {seq:UInt64}
  ORDER BY block, log_index, seq DESC
  LIMIT 1 BY block, log_index
)
WHERE sign = 1
