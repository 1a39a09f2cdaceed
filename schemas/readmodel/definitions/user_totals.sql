-- The running totals of users in each vault. The last row of a block has its total.
SELECT 'user_totals' AS list, owner, scope, toInt256(until) AS key, block, ts, closed_ts,
  deposits, deposited, requests, estimated, claims, claimed, funded_shares, claimed_shares
FROM (
  SELECT user AS owner, vault AS scope, block, ts,
    leadInFrame(block, 1, {never:UInt64})
      OVER (PARTITION BY user, vault ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS until,
    leadInFrame(ts, 1, 0)
      OVER (PARTITION BY user, vault ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS closed_ts,
    countIf(what = 1) OVER so_far - countIf(what = 10) OVER so_far AS deposits,
    sumIf(amount, what = 1) OVER so_far - sumIf(amount, what = 10) OVER so_far AS deposited,
    countIf(what = 2) OVER so_far AS requests, sumIf(amount, what = 2) OVER so_far AS estimated,
    countIf(what = 3) OVER so_far AS claims, sumIf(amount, what = 3) OVER so_far AS claimed,
    maxIf(amount, what = 8) OVER so_far AS funded_shares, maxIf(amount, what = 9) OVER so_far AS claimed_shares
  FROM change
  WINDOW so_far AS (PARTITION BY user, vault ORDER BY block ROWS UNBOUNDED PRECEDING)
)
WHERE until != block
