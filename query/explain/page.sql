-- A page of the live ones of some logs, oldest first: of the rows at a place the newest one says whether there is a live
-- log. Where the rows come in the order of a table or projection, reading stops at the end of the page.
SELECT seq, block, log_index, event, vault, id, change, toUInt64(0) AS retracted_by
FROM (
  SELECT seq, sign, block, log_index, event, vault, id, change
  FROM ({logs})
  ORDER BY block, log_index, seq DESC
  LIMIT 1 BY block, log_index
)
WHERE sign = 1
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
