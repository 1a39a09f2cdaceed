-- The requests of special vaults, and the claims and cancellations that name only an owner. The line of an owner is in
-- the order of line_place and place.
SELECT vault, id, place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires,
  hash, by, grouped, group_id, source_id, matures, priced_block, toInt256(priced_assets) AS priced_assets,
  funded_block, funded_ts, funded_assets, last, in_line, line_place, false AS is_claim
FROM settled
UNION ALL
SELECT vault, id, place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires,
  tx, by, grouped, group_id, source_id, matures, 0, 0, 0, 0, 0, (place, block, ts, assets, effect, false),
  false, place, true
FROM live
WHERE effect = 'claimed' AND by = 'owner' OR effect = 'cancelled' AND by = 'fifo'
