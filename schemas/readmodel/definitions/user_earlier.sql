-- The users with so many changes in a vault that their totals are added up within buckets of blocks, as those of vaults
-- are, and over the buckets. For each bucket with changes: the totals before it, and the first block after it with a
-- change.
SELECT user, vault, bucket,
  leadInFrame(first_block, 1, {never:UInt64}) OVER next AS later_block, leadInFrame(first_ts, 1, 0) OVER next AS later_ts,
  sum(deposits) OVER before AS deposits, sum(deposited) OVER before AS deposited,
  sum(requests) OVER before AS requests, sum(estimated) OVER before AS estimated, sum(claims) OVER before AS claims,
  sum(claimed) OVER before AS claimed, max(funded_shares) OVER before AS funded_shares,
  max(claimed_shares) OVER before AS claimed_shares
FROM (
  SELECT user, vault, intDiv(block, {bucket:UInt64}) AS bucket, min(block) AS first_block, argMin(ts, block) AS first_ts,
    toInt64(countIf(what = 1)) - toInt64(countIf(what = 10)) AS deposits,
    sumIf(amount, what = 1) - sumIf(amount, what = 10) AS deposited,
    countIf(what = 2) AS requests, sumIf(amount, what = 2) AS estimated,
    countIf(what = 3) AS claims, sumIf(amount, what = 3) AS claimed,
    maxIf(amount, what = 8) AS funded_shares, maxIf(amount, what = 9) AS claimed_shares
  FROM change
  WHERE (user, vault) IN (SELECT user, vault FROM change GROUP BY user, vault HAVING count() > 10 * {bucket:UInt64})
  GROUP BY user, vault, bucket
)
WINDOW before AS (PARTITION BY user, vault ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
  next AS (PARTITION BY user, vault ORDER BY bucket ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
