-- A page of the deposits of a vault, which numbers them, newest first: of the rows at a place the newest one says whether
-- there is a live log. It is read in the order of the table and stops at the end of the page, also where several parts are
-- merged, which by itself would read blocks and buffers of 65,536 rows.
SELECT vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index
FROM (
  SELECT vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index, sign
  FROM deposits
  WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND deposit_id <= {before_id:UInt64}
    AND (deposit_id < {before_id:UInt64} OR block < {before_block:UInt64} OR block = {before_block:UInt64} AND log_index < {before_log:UInt32})
    AND ts >= {from:Int64} AND ts <= {to:Int64}
  ORDER BY vault DESC, deposit_id DESC, block DESC, log_index DESC, seq DESC
  LIMIT 1 BY deposit_id, block, log_index
)
WHERE sign = 1
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS optimize_use_projections = 0, max_block_size = 512, read_in_order_use_buffering = 0
