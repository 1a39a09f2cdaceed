-- What changes totals: of which user, partner and vault, and by what: 1 a deposit, 2 a request, 3 a claim.
SELECT user, vault, partner_owner, partner, block, ts, 1 AS what, assets AS amount
FROM live
WHERE effect = 'deposit'
UNION ALL
SELECT user, vault, partner_owner, partner, block, ts, 2, assets
FROM request
UNION ALL
SELECT user, vault, partner_owner, 0, block, ts, 3, assets
FROM live
WHERE effect = 'claimed'
