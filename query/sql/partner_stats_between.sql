-- A partner's deposits by vault from a block on.
SELECT vault, sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume, sum(partner_user) AS users
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32} AND block >= {from:UInt64} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
GROUP BY vault
SETTINGS preferred_optimize_projection_name = 'by_partner', optimize_use_projection_filtering = 0, optimize_move_to_prewhere = 0
