-- When a vault had its newest NAV: of the rows at a place the newest one says whether there is a live log.
SELECT ts
FROM (
  SELECT block, log_index, ts, sign
  FROM navs
  WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY vault DESC, block DESC, log_index DESC, seq DESC
  LIMIT 1 BY block, log_index
)
WHERE sign = 1
LIMIT 1
