-- A page of those of some logs that are live, oldest first: of the rows at one place, the newest one shows whether a log
-- is live.
SELECT seq, sub, block, log_index, event AS name, vault, user, ts, tx, toString(change) AS amount, toUInt64(0) AS retracted_by
FROM (
  SELECT *
  FROM ({logs})
  ORDER BY block, log_index, sub, seq DESC
  LIMIT 1 BY block, log_index, sub
)
WHERE sign = 1
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
