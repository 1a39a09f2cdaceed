-- How many deposits and withdrawal requests a user has, in all vaults or one.
SELECT sum(sign) AS live
FROM (
  SELECT sign
  FROM deposits
  WHERE user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  SETTINGS preferred_optimize_projection_name = 'by_user'
  UNION ALL
  SELECT sign
  FROM withdrawal_events
  WHERE user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  SETTINGS preferred_optimize_projection_name = 'by_user'
)
