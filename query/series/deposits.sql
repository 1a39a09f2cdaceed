-- How many deposits a vault took in each bucket, and what they sum up to.
SELECT intDiv(toInt64(ts) + {shift:Int64}, {width:Int64}) AS bucket, sum(sign) AS total, sum(sign * assets) AS amount
FROM deposits
WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ts >= {from:Int64} AND ts < {until:Int64}
GROUP BY bucket
SETTINGS optimize_use_projections = 0
