-- What some users claimed.
SELECT user, sum(sign * assets) AS amount
FROM withdrawal_events
WHERE user IN ({users}) AND kind = 'claimed' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY user
SETTINGS preferred_optimize_projection_name = 'by_user'
