-- Rows of lists of totals and members, including pairs that no merge has removed yet.
SELECT sign, toInt8(list), owner, scope, user, block, ts,
  deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations,
  supply, funded_shares, claimed_shares, funded_to, deposits_to, requests_to,
  shares, assets, nav, valued_block, valued_log, valued_ts, swept_block, swept_ts
FROM lists
WHERE {keys}
