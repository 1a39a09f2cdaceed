-- Rows of lists of totals and members, including pairs that no merge has removed yet.
SELECT sign, toInt8(list), owner, scope, user, block, ts,
  deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations,
  supply, funded_shares, claimed_shares, funded_to, deposits_to, requests_to
FROM lists
WHERE {keys}
