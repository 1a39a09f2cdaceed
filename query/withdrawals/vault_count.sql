-- How many requests a vault has: as in the question for a page, the first live log of an index is the request.
SELECT toInt64(count()) AS total
FROM (
  SELECT ts
  FROM (
    SELECT request_index, ts, sign
    FROM withdrawal_events
    WHERE vault = {vault:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    ORDER BY vault DESC, request_index DESC, block, log_index, seq DESC
    LIMIT 1 BY request_index, block, log_index
  )
  WHERE sign = 1
  LIMIT 1 BY request_index
)
WHERE ts >= {from:Int64} AND ts <= {to:Int64}
SETTINGS optimize_use_projections = 0
