-- How many deposits a vault has.
SELECT sum(sign) AS total
FROM deposits
WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ts >= {from:Int64} AND ts <= {to:Int64}
SETTINGS optimize_use_projections = 0
