-- A page of the NAVs of a vault, newest first: of the rows at a place the newest one says whether there is a live log. It
-- is read in the order of the table and stops at the end of the page.
SELECT nav_per_share, total_assets, total_supply, block, ts, tx, log_index
FROM (
  SELECT nav_per_share, total_assets, total_supply, block, ts, tx, log_index, sign
  FROM navs
  WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND block <= {before_block:UInt64} AND (block < {before_block:UInt64} OR log_index < {before_log:UInt32})
    AND ts >= {from:Int64} AND ts <= {to:Int64}
  ORDER BY vault DESC, block DESC, log_index DESC, seq DESC
  LIMIT 1 BY block, log_index
)
WHERE sign = 1
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0
