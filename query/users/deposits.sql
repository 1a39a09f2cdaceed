-- What a user deposited in each vault, and when first.
SELECT vault, sum(sign) AS count, sum(sign * assets) AS amount
FROM deposits
WHERE user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
SETTINGS preferred_optimize_projection_name = 'by_user'
