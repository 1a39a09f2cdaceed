-- The newest NAV of every vault.
SELECT vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index
FROM {db:Identifier}.navs
WHERE sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.navs WHERE sign = -1 AND seq <= {seq:UInt64} AND block <= {block:UInt64})
ORDER BY vault, block DESC, log_index DESC LIMIT 1 BY vault
