-- How many deposits a user has.
SELECT sum(sign) AS total
FROM deposits
WHERE user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND ts >= {from:Int64} AND ts <= {to:Int64}
SETTINGS preferred_optimize_projection_name = 'by_user'
