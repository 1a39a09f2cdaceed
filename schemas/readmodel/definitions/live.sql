-- The live effects up to a seq. place is the position of an effect in the chain as one number.
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM events
WHERE record IN ('log', 'sample') AND effect != 'none' AND sign = 1 AND seq <= {seq:UInt64} AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM events WHERE sign = -1 AND seq <= {seq:UInt64})
