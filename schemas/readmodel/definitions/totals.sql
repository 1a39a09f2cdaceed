-- The running totals of vaults and of partners in each vault, and the number of users in each scope. The last row of
-- a block has its total. what is 1 to 3 as in change, 4 users, 5 a swept deposit, 6 the deposits by which a sweep
-- went beyond earlier ones, 7 a valuation, 11 a mint or burn, and 12 to 14 the highest group that was funded, or
-- whose deposits or requests were priced.
SELECT 'totals' AS list, owner, scope, toInt256(until) AS key, block, ts, closed_ts,
  deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations,
  supply, funded_to, deposits_to, requests_to
FROM (
  SELECT owner, scope, block, ts,
    leadInFrame(block, 1, {never:UInt64})
      OVER (PARTITION BY owner, scope ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS until,
    leadInFrame(ts, 1, 0)
      OVER (PARTITION BY owner, scope ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS closed_ts,
    countIf(what = 1) OVER so_far - countIf(what = 10) OVER so_far AS deposits,
    sumIf(amount, what = 1) OVER so_far - sumIf(amount, what = 10) OVER so_far AS deposited,
    countIf(what = 2) OVER so_far AS requests, sumIf(amount, what = 2) OVER so_far AS estimated,
    countIf(what = 3) OVER so_far AS claims, sumIf(amount, what = 3) OVER so_far AS claimed,
    sumIf(amount, what = 4) OVER so_far AS users,
    countIf(what = 5) OVER so_far AS swept, sumIf(amount, what = 5) OVER so_far AS swept_assets,
    sumIf(amount, what = 6) OVER so_far AS swept_to,
    countIf(what = 7) OVER so_far AS valuations, sumIf(amount, what = 11) OVER so_far AS supply,
    maxIf(amount, what = 12) OVER so_far AS funded_to, maxIf(amount, what = 13) OVER so_far AS deposits_to,
    maxIf(amount, what = 14) OVER so_far AS requests_to
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
    SELECT vault, vault, block, ts, 7, 0
    FROM live
    WHERE effect = 'valuation'
    UNION ALL
    SELECT vault, vault, block, ts, 11, shares
    FROM live
    WHERE effect = 'supply' AND shares != 0
    UNION ALL
    SELECT vault, vault, block, ts, multiIf(effect = 'funded', 12, effect = 'priced_deposits', 13, 14), toInt256(bound)
    FROM reach
    WHERE raises AND bound > 0
  )
  WINDOW so_far AS (PARTITION BY owner, scope ORDER BY block ROWS UNBOUNDED PRECEDING)
)
WHERE until != block
