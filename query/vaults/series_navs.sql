-- The NAVs of a vault in each bucket: their number, the first and last in chain order, the highest and the lowest.
-- NAVs before the first bucket are in the bucket before it. One more row is the cursor.
SELECT list, greatest(intDiv(toInt64(ts) + {shift:Int64}, {width:Int64}), {first:Int64} - 1) AS bucket, toInt64(count()) AS updates,
  argMin(nav, (block, log_index, sub)) AS opened, max(nav) AS high, min(nav) AS low,
  argMax(nav, (block, log_index, sub)) AS closed, argMax(assets, (block, log_index, sub)) AS total_assets,
  argMax(shares, (block, log_index, sub)) AS total_supply, max(block) AS last_block, argMax(log_index, (block, log_index, sub)) AS last_log,
  max(cursor_seq) AS seq, max(cursor_rewrites) AS rewrites
FROM (
  SELECT list, block, log_index, sub, ts, nav, assets, shares, seq AS cursor_seq, rewrites AS cursor_rewrites
  FROM lists
  WHERE (list = 'vault_events' AND owner = {vault:FixedString(20)} AND kind = 'valuation' AND block <= {block:UInt64} AND ts < {until:Int64})
    OR list = 'cursor'
  GROUP BY list, block, log_index, sub, ts, nav, assets, shares, cursor_seq, cursor_rewrites
  HAVING sum(sign) > 0
)
GROUP BY list, bucket
