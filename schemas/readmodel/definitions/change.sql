-- The changes of totals, with user, partner, vault and kind (what): 1 a deposit, 2 a request, 3 a payment, 8 shares
-- funded in a line, 9 shares claimed in a line, 10 a void deposit.
SELECT user, vault, partner_owner, partner, block, ts, 1 AS what, assets AS amount
FROM live
WHERE effect = 'deposit'
UNION ALL
SELECT user, vault, partner_owner, partner, closed_block, closed_ts, 10, assets
FROM grouped_deposit
WHERE is_void
UNION ALL
SELECT user, vault, partner_owner, partner, block, ts, 2, assets
FROM plain
UNION ALL
SELECT user, vault, partner_owner, change.1, change.2, change.3, change.4, change.5
FROM (
  SELECT user, vault, partner_owner,
    arrayJoin(if(is_claim, if(raises, [(toUInt32(0), block, ts, 9, taken)], []), arrayConcat([(partner, block, ts, 2, assets)],
      if(in_line, [(toUInt32(0), if(by = 'fifo', funded_block, block), if(by = 'fifo', funded_ts, ts), 8, cum_to)], []))))
      AS change
  FROM line
)
UNION ALL
SELECT user, vault, partner_owner, 0, block, ts, 3, assets
FROM paid
