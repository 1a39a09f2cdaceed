-- What each block changes in the totals of vaults, of partners in each vault, and in the number of users of each scope.
-- what is 1 to 3 and 10 as in change, 4 users, 5 a swept deposit, 6 the deposits by which a sweep went beyond earlier
-- ones, 7 a valuation, 11 a mint or burn, 12 to 14 the highest group that was funded, or whose deposits or requests
-- were priced, and 15 a sweep, which changes the time of the last one.
SELECT owner, scope, intDiv(block, {bucket:UInt64}) AS bucket, block, any(ts) AS ts,
  toInt64(countIf(what = 1)) - toInt64(countIf(what = 10)) AS deposits,
  sumIf(amount, what = 1) - sumIf(amount, what = 10) AS deposited,
  countIf(what = 2) AS requests, sumIf(amount, what = 2) AS estimated,
  countIf(what = 3) AS claims, sumIf(amount, what = 3) AS claimed,
  sumIf(amount, what = 4) AS users,
  countIf(what = 5) AS swept, sumIf(amount, what = 5) AS swept_assets,
  sumIf(amount, what = 6) AS swept_to,
  countIf(what = 7) AS valuations, sumIf(amount, what = 11) AS supply,
  maxIf(amount, what = 12) AS funded_to, maxIf(amount, what = 13) AS deposits_to,
  maxIf(amount, what = 14) AS requests_to
FROM (
  SELECT arrayJoin(if(partner = 0, [vault], [vault, partner_owner])) AS owner, vault AS scope, block, ts, what, amount
  FROM change
  WHERE what NOT IN (8, 9)
  UNION ALL
  SELECT owner, if(ranked, owner, scope), block, any(ts), 4, count()
  FROM member
  GROUP BY owner, ranked, scope, block
  UNION ALL
  SELECT vault, vault, closed_block, closed_ts, 5, assets
  FROM deposit
  WHERE swept
  UNION ALL
  SELECT vault, vault, block, ts, 6, toInt256(id_to) - before
  FROM reached
  UNION ALL
  SELECT vault, vault, block, ts, if(effect = 'valuation', 7, 15), 0
  FROM live
  WHERE effect IN ('valuation', 'sweep')
  UNION ALL
  SELECT vault, vault, block, ts, 11, shares
  FROM live
  WHERE effect = 'supply' AND shares != 0
  UNION ALL
  SELECT vault, vault, block, ts, multiIf(effect = 'funded', 12, effect = 'priced_deposits', 13, 14), toInt256(bound)
  FROM reach
  WHERE raises AND bound > 0
)
GROUP BY owner, scope, block
