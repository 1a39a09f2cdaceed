-- How long the requests of a vault that were made in a block range and funded up to a block waited for their funding.
-- One more row is the cursor.
SELECT list, toUInt64(count()) AS requests, toUInt64(countIf(has_money)) AS funded,
  toUInt64(if(countIf(has_money) = 0, 0, quantileExactLowIf(0.5)(waited, has_money))) AS median,
  toUInt64(if(countIf(has_money) = 0, 0, maxIf(waited, has_money))) AS longest,
  toUInt64(sum(mark_seq)) AS seq, toUInt64(sum(mark_rewrites)) AS rewrites
FROM (
  SELECT list, funded_block <= {block:UInt64} AS has_money, if(has_money, toInt64(funded_ts) - toInt64(ts), 0) AS waited,
    sum(sign) AS live, sum(sign * seq) AS mark_seq, sum(sign * rewrites) AS mark_rewrites
  FROM lists
  WHERE (list = 'requests' AND owner = {vault:FixedString(20)} AND block >= {first:UInt64} AND block <= {last:UInt64}) OR list = 'cursor'
  GROUP BY list, key, block, log_index, sub, ts, funded_block, funded_ts
  HAVING live > 0
)
GROUP BY list
