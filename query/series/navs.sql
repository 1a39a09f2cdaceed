-- The NAVs of a vault in each bucket: how many, the first and the last of the chain, the highest and the lowest; those from
-- before the first bucket are in the one before it.
SELECT greatest(intDiv(toInt64(ts) + {shift:Int64}, {width:Int64}), {first:Int64} - 1) AS bucket, toInt64(count()) AS updates,
  argMin(nav_per_share, (block, log_index)) AS opened, max(nav_per_share) AS high, min(nav_per_share) AS low,
  argMax(nav_per_share, (block, log_index)) AS closed, argMax(total_assets, (block, log_index)) AS assets,
  argMax(total_supply, (block, log_index)) AS supply, max(block) AS last_block, argMax(log_index, (block, log_index)) AS last_log
FROM navs
WHERE vault = {vault:FixedString(20)} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND ts < {until:Int64}
  AND seq NOT IN (SELECT retracts FROM navs WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64})
GROUP BY bucket
