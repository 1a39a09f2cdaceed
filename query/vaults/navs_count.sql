-- How many NAVs a vault has.
SELECT sum(sign) AS total
FROM navs
WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ts >= {from:Int64} AND ts <= {to:Int64}
