-- Rows of lists of requests and deposits, including pairs that no merge has removed yet.
SELECT sign, toInt8(list), owner, toInt8(kind), block, log_index, sub, user, vault, other, partner, id, shares, assets, nav, expires, ts, hash,
  funded_block, funded_ts, funded_assets, closed_block, closed_ts, toInt8(closed_by), closed_assets,
  toInt8(by), grouped, group_id, source_id, matures, priced_block, priced_assets, cum_from, cum_to
FROM lists
WHERE {keys}
