-- What some users deposited, in all vaults or one.
SELECT user, sum(sign * assets) AS amount
FROM deposits
WHERE user IN ({users}) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
GROUP BY user
SETTINGS preferred_optimize_projection_name = 'by_user'
