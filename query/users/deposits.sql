-- What a user deposited in each vault.
SELECT vault, sum(sign) AS count, sum(if(sign = 1, assets, -assets)) AS amount
FROM deposits
WHERE user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
SETTINGS preferred_optimize_projection_name = 'by_user'
