-- A page of some logs, live and retracted ones, oldest first: the row that takes one back comes next at its place.
SELECT seq, block, log_index, event, vault, id, change, retracted_by
FROM (
  SELECT seq, sign, block, log_index, event, vault, id, change,
    leadInFrame(seq, 1, toUInt64(0)) OVER (PARTITION BY block, log_index ORDER BY seq ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS retracted_by
  FROM ({logs})
)
WHERE sign = 1
ORDER BY block, log_index, seq
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
