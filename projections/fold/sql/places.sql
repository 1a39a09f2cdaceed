-- Rows of lists of requests and deposits, with pairs that no merge has taken away yet.
SELECT sign, kind = 'deposit', block, log_index, sub, user, vault, other, partner, id, shares, assets, expires, ts, hash,
  funded_block, funded_ts, funded_assets, closed_block, closed_ts, toInt8(closed_by), closed_assets
FROM lists
WHERE {keys}
