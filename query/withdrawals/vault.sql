-- A page of the requests of a vault, which numbers them, newest first: of the rows at a place the newest one says whether
-- there is a live log, and of the live ones of an index the first is the request. It is read in the order of the table and
-- stops at the end of the page.
SELECT vault, request_index
FROM (
  SELECT vault, request_index, ts
  FROM (
    SELECT vault, request_index, ts, sign
    FROM withdrawal_events
    WHERE vault = {vault:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND request_index <= {up_to:UInt64}
    ORDER BY vault DESC, request_index DESC, block, log_index, seq DESC
    LIMIT 1 BY request_index, block, log_index
  )
  WHERE sign = 1
  LIMIT 1 BY request_index
)
WHERE ts >= {from:Int64} AND ts <= {to:Int64}
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS optimize_use_projections = 0, max_block_size = 512, read_in_order_use_buffering = 0
