-- How many deposits and withdrawal requests a user has.
SELECT sum(sign) AS live
FROM (
  SELECT sign
  FROM deposits
  WHERE user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  SETTINGS preferred_optimize_projection_name = 'by_user'
  UNION ALL
  SELECT sign
  FROM withdrawal_events
  WHERE user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  SETTINGS preferred_optimize_projection_name = 'by_user'
)
