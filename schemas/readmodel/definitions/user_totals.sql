-- The running totals of users in each vault, after each block that changes them; see totals.
SELECT 'user_totals' AS list, owner, scope, toInt256(until) AS key, block, ts, closed_ts,
  deposits, deposited, requests, estimated, claims, claimed, funded_shares, claimed_shares
FROM (
  SELECT owner, scope, block, ts, until, closed_ts, is_earlier,
    sum(deposits) OVER so_far AS deposits, sum(deposited) OVER so_far AS deposited, sum(requests) OVER so_far AS requests,
    sum(estimated) OVER so_far AS estimated, sum(claims) OVER so_far AS claims, sum(claimed) OVER so_far AS claimed,
    max(funded_shares) OVER so_far AS funded_shares, max(claimed_shares) OVER so_far AS claimed_shares
  FROM (
    SELECT owner, scope, bucket, false AS is_earlier, block, ts,
      leadInFrame(block, 1, {never:UInt64}) OVER next AS until, leadInFrame(ts, 1, 0) OVER next AS closed_ts,
      deposits, deposited, requests, estimated, claims, claimed, funded_shares, claimed_shares
    FROM user_delta
    WINDOW next AS (PARTITION BY owner, scope ORDER BY bucket, block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
    UNION ALL
    SELECT owner, scope, bucket, true, 0, 0, 0, 0,
      sum(deposits) OVER earlier AS deposits, sum(deposited) OVER earlier AS deposited, sum(requests) OVER earlier AS requests,
      sum(estimated) OVER earlier AS estimated, sum(claims) OVER earlier AS claims, sum(claimed) OVER earlier AS claimed,
      max(funded_shares) OVER earlier AS funded_shares, max(claimed_shares) OVER earlier AS claimed_shares
    FROM (
      SELECT owner, scope, bucket,
        sum(deposits) AS deposits, sum(deposited) AS deposited, sum(requests) AS requests,
        sum(estimated) AS estimated, sum(claims) AS claims, sum(claimed) AS claimed,
        max(funded_shares) AS funded_shares, max(claimed_shares) AS claimed_shares
      FROM user_delta
      GROUP BY owner, scope, bucket
    )
    WINDOW earlier AS (PARTITION BY owner, scope ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    QUALIFY count() OVER earlier > 0
  )
  WINDOW so_far AS (PARTITION BY owner, scope, bucket ORDER BY is_earlier DESC, block ROWS UNBOUNDED PRECEDING)
)
WHERE NOT is_earlier
