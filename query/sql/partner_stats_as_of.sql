-- The same as of a block: the 4,096 blocks that it is among are told by row
-- (side 0: up to it, 2: after it) and the others by the projection totals (side
-- 0: before those blocks, 1: these, which is said better by row, 2: after them).
SELECT vault, toUInt8(multiIf(intDiv(block, 4096) < intDiv({block:UInt64}, 4096), 0, intDiv(block, 4096) = intDiv({block:UInt64}, 4096), 1, 2)) AS side,
  sum(sign) AS deposits, sum(sign * assets) AS volume, sum(partner_user) AS users, min(seq) AS first, max(seq) AS last
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32}
GROUP BY vault, side
UNION ALL
SELECT vault, toUInt8(if(block <= {block:UInt64}, 0, 2)) AS side,
  sum(sign) AS deposits, sum(sign * assets) AS volume, sum(partner_user) AS users, min(seq) AS first, max(seq) AS last
FROM {db:Identifier}.deposits
WHERE partner = {partner:UInt32} AND block >= 4096 * intDiv({block:UInt64}, 4096) AND block < 4096 * (intDiv({block:UInt64}, 4096) + 1)
GROUP BY vault, side
