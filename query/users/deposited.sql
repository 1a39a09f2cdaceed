-- What some users deposited.
SELECT user, sum(sign * assets) AS amount
FROM deposits
WHERE user IN ({users}) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY user
SETTINGS preferred_optimize_projection_name = 'by_user'
