-- The running totals of vaults, and of partners in each vault, and the number of users in each scope: of the rows of
-- a block the last is the total. What a row adds: 1 to 3 as in change, 4 a user, 5 a swept deposit, 6 how far a sweep
-- went beyond those before it, 7 a valuation.
SELECT 'totals' AS list, owner, scope, toInt256(until) AS key, block, ts, closed_ts,
  deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations
FROM (
  SELECT owner, scope, block, ts,
    leadInFrame(block, 1, {never:UInt64})
      OVER (PARTITION BY owner, scope ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS until,
    leadInFrame(ts, 1, 0)
      OVER (PARTITION BY owner, scope ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS closed_ts,
    countIf(what = 1) OVER so_far AS deposits, sumIf(amount, what = 1) OVER so_far AS deposited,
    countIf(what = 2) OVER so_far AS requests, sumIf(amount, what = 2) OVER so_far AS estimated,
    countIf(what = 3) OVER so_far AS claims, sumIf(amount, what = 3) OVER so_far AS claimed,
    sumIf(amount, what = 4) OVER so_far AS users,
    countIf(what = 5) OVER so_far AS swept, sumIf(amount, what = 5) OVER so_far AS swept_assets,
    sumIf(amount, what = 6) OVER so_far AS swept_to,
    countIf(what = 7) OVER so_far AS valuations
  FROM (
    SELECT arrayJoin(if(partner = 0, [vault], [vault, partner_owner])) AS owner, vault AS scope, block, ts, what, amount
    FROM change
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
  )
  WINDOW so_far AS (PARTITION BY owner, scope ORDER BY block ROWS UNBOUNDED PRECEDING)
)
WHERE until != block
