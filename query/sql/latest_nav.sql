-- The newest NAV of a vault, however long ago. Of one place in the chain the
-- newest row decides. It looks at the last places only; where a reorganisation
-- took all of them back, the caller asks again with a larger scan.
SELECT vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index
FROM (
  SELECT vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index, sign
  FROM {db:Identifier}.navs
  WHERE vault = {vault:FixedString(20)} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  ORDER BY vault DESC, block DESC, log_index DESC, seq DESC LIMIT 1 BY block, log_index LIMIT {scan:UInt64}
)
WHERE sign = 1
ORDER BY block DESC, log_index DESC LIMIT 1
{{template "by_row"}}
