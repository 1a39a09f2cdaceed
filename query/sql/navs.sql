-- A page of a vault's NAV history, newest first.
SELECT vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index
FROM {db:Identifier}.navs
WHERE vault = {vault:FixedString(20)}
  {{- if .Live}} AND sign = 1 AND seq NOT IN (
    SELECT retracts FROM {db:Identifier}.navs WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {lastLog:UInt64})
  {{- end}} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64} AND ts >= {from:Int64} AND ts <= {to:Int64}
ORDER BY vault DESC, block DESC, log_index DESC, seq DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
{{template "by_row"}}
