-- The same where not all rows count: of the spans of 4,096 blocks those before
-- the first that is told by row (side 0) and those after the last (side 2) come
-- from the projection totals, and the ones between (side 1) are said better by
-- row (side 0: it counts, 2: it is of a later block).
SELECT vault, toUInt8(multiIf(4096 * intDiv(block, 4096) < {from:UInt64}, 0, 4096 * intDiv(block, 4096) < {to:UInt64}, 1, 2)) AS side,
  sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume, sum(partner_user) AS users, min(seq) AS first, max(seq) AS last
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32}
GROUP BY vault, side
UNION ALL
SELECT vault, toUInt8(if(block <= {block:UInt64}, 0, 2)) AS side,
  sum(sign) AS deposits, count() AS said, sum(sign * assets) AS volume, sum(partner_user) AS users, min(seq) AS first, max(seq) AS last
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32} AND block >= {from:UInt64} AND block < {to:UInt64} AND seq <= {seq:UInt64}
GROUP BY vault, side
SETTINGS preferred_optimize_projection_name = 'by_partner', optimize_use_projection_filtering = 0, optimize_move_to_prewhere = 0
