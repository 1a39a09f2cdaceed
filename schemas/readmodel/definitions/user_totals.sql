-- The running totals of users in each vault: the totals before the bucket and the sums within it. The last row of a
-- block has its total.
SELECT 'user_totals' AS list, user AS owner, vault AS scope,
  toInt256(multiIf(next > 0, next, later_block > 0, later_block, {never:UInt64})) AS key, block, ts,
  if(next > 0, next_ts, later_ts) AS closed_ts,
  earlier.deposits + within.deposits AS deposits, earlier.deposited + within.deposited AS deposited,
  earlier.requests + within.requests AS requests, earlier.estimated + within.estimated AS estimated,
  earlier.claims + within.claims AS claims, earlier.claimed + within.claimed AS claimed,
  greatest(earlier.funded_shares, within.funded_shares) AS funded_shares,
  greatest(earlier.claimed_shares, within.claimed_shares) AS claimed_shares
FROM (
  SELECT user, vault, bucket, block, ts,
    leadInFrame(block, 1, 0) OVER next AS next, leadInFrame(ts, 1, 0) OVER next AS next_ts,
    toInt64(countIf(what = 1) OVER so_far) - toInt64(countIf(what = 10) OVER so_far) AS deposits,
    sumIf(amount, what = 1) OVER so_far - sumIf(amount, what = 10) OVER so_far AS deposited,
    countIf(what = 2) OVER so_far AS requests, sumIf(amount, what = 2) OVER so_far AS estimated,
    countIf(what = 3) OVER so_far AS claims, sumIf(amount, what = 3) OVER so_far AS claimed,
    maxIf(amount, what = 8) OVER so_far AS funded_shares, maxIf(amount, what = 9) OVER so_far AS claimed_shares
  FROM user_change
  WINDOW so_far AS (PARTITION BY user, vault, bucket ORDER BY block ROWS UNBOUNDED PRECEDING),
    next AS (PARTITION BY user, vault, bucket ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
) AS within
LEFT JOIN user_earlier AS earlier USING (user, vault, bucket)
WHERE next != block
