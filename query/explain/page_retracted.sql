-- A page of some logs, live and retracted, oldest first: the row that retracts a log is the next one at its place.
SELECT seq, sub, block, log_index, event AS name, vault, user, ts, tx, toString(change) AS amount, retracted_by
FROM (
  SELECT *, leadInFrame(seq, 1, toUInt64(0)) OVER (PARTITION BY block, log_index, sub ORDER BY seq ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS retracted_by
  FROM ({logs})
)
WHERE sign = 1
ORDER BY block, log_index, sub, seq
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
