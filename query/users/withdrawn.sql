-- What some users claimed, in all vaults or one.
SELECT user, sum(sign * assets) AS amount
FROM withdrawal_events
WHERE user IN ({users}) AND kind = 'claimed' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
GROUP BY user
SETTINGS preferred_optimize_projection_name = 'by_user'
