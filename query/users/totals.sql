-- What some users deposited and withdrew.
SELECT user, sum(deposit) AS deposited, sum(claim) AS withdrawn
FROM (
  SELECT user, sign * assets AS deposit, toInt256(0) AS claim
  FROM deposits
  WHERE user IN ({users}) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  UNION ALL
  SELECT user, toInt256(0), sign * assets
  FROM withdrawal_events
  WHERE user IN ({users}) AND kind = 'claimed' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
)
GROUP BY user
SETTINGS preferred_optimize_projection_name = 'by_user'
