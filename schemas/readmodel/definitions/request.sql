-- The requests, with the life of each.
SELECT vault, id, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, hash,
  source_id, matures, funded_block, funded_ts, funded_assets, closed_block, closed_ts, closed_assets, closed_by,
  'none' AS by, false AS grouped, 0 AS group_id, 0 AS priced_block, toInt256(0) AS priced_assets,
  toInt256(0) AS cum_from, toInt256(0) AS cum_to
FROM plain
UNION ALL
SELECT vault, id, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, hash,
  source_id, matures, funded_block, funded_ts, funded_assets, closed.1, closed.2, closed.3, closed.4,
  toString(by), grouped, group_id, priced_block, priced_assets,
  if(in_line, cum_to - shares, 0), if(in_line, cum_to, 0)
FROM (
  SELECT *, multiIf(
    paid.1 > 0 AND (last.1 = 0 OR paid.1 < last.1),
      (paid.2, paid.3, multiIf(paid.4 = 'cancelled', 0, funded_block = {never:UInt64}, assets, funded_assets), toString(paid.4)),
    last.1 > 0, (last.2, last.3,
      multiIf(NOT last.6, last.4, funded_block = {never:UInt64}, assets, funded_assets), toString(last.5)),
    ({never:UInt64}, toUInt32(0), toInt256(0), 'none')) AS closed
  FROM line
  WHERE NOT is_claim
)
