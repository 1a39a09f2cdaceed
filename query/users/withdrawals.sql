-- What a user asked for in each vault, and what was claimed.
SELECT vault, sumIf(sign, kind = 'requested') AS count, sumIf(sign * assets, kind = 'requested') AS amount,
  sumIf(sign * assets, kind = 'claimed') AS claimed
FROM withdrawal_events
WHERE user = {user:FixedString(20)} AND kind IN ('requested', 'claimed') AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
SETTINGS preferred_optimize_projection_name = 'by_user'
