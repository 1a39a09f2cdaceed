-- What the blocks change in the totals of users in each vault; see delta.
SELECT user AS owner, vault AS scope, intDiv(block, 4096) AS bucket, block, any(ts) AS ts,
  toInt64(countIf(what = 1)) - toInt64(countIf(what = 10)) AS deposits,
  sumIf(amount, what = 1) - sumIf(amount, what = 10) AS deposited,
  countIf(what = 2) AS requests, sumIf(amount, what = 2) AS estimated,
  countIf(what = 3) AS claims, sumIf(amount, what = 3) AS claimed,
  maxIf(amount, what = 8) AS funded_shares, maxIf(amount, what = 9) AS claimed_shares
FROM change
GROUP BY owner, scope, block
