-- The newest NAV update of a vault, with one of the things that it says; it is read in the order of the table and stops at
-- the first. Of the rows at a place the newest one says whether there is a live log.
SELECT seq, sign, block, log_index, 'NavUpdated' AS event, vault, block AS id,
  multiIf({measure:String} = 'supply', total_supply, {measure:String} = 'assets', total_assets, nav_per_share) AS change
FROM (
  SELECT seq, sign, vault, nav_per_share, total_assets, total_supply, block, log_index
  FROM navs
  WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY vault DESC, block DESC, log_index DESC, seq DESC
  LIMIT 1 BY block, log_index
)
WHERE sign = 1
LIMIT 1
UNION ALL
SELECT seq, sign, block, log_index, 'NavUpdated', vault, block, toInt256(0)
FROM navs
WHERE {retracted:UInt32} = 1 AND vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND (sign = -1 OR seq IN (SELECT retracts FROM navs WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64}))
