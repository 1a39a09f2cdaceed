-- The running totals of vaults and of partners in each vault, and the number of users in each scope, after each block
-- that changes them. Each bucket of blocks begins with a row of the totals of earlier buckets.
SELECT 'totals' AS list, owner, scope, toInt256(until) AS key, block, ts, closed_ts,
  deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations, supply,
  funded_to, deposits_to, requests_to
FROM (
  SELECT owner, scope, block, ts, until, closed_ts, is_earlier,
    sum(deposits) OVER so_far AS deposits, sum(deposited) OVER so_far AS deposited, sum(requests) OVER so_far AS requests,
    sum(estimated) OVER so_far AS estimated, sum(claims) OVER so_far AS claims, sum(claimed) OVER so_far AS claimed,
    sum(users) OVER so_far AS users, sum(swept) OVER so_far AS swept, sum(swept_assets) OVER so_far AS swept_assets,
    sum(swept_to) OVER so_far AS swept_to, sum(valuations) OVER so_far AS valuations, sum(supply) OVER so_far AS supply,
    max(funded_to) OVER so_far AS funded_to, max(deposits_to) OVER so_far AS deposits_to, max(requests_to) OVER so_far AS requests_to
  FROM (
    SELECT owner, scope, bucket, false AS is_earlier, block, ts,
      leadInFrame(block, 1, {never:UInt64}) OVER next AS until, leadInFrame(ts, 1, 0) OVER next AS closed_ts,
      deposits, deposited, requests, estimated, claims, claimed, users, swept, swept_assets, swept_to, valuations,
      supply, funded_to, deposits_to, requests_to
    FROM delta
    WINDOW next AS (PARTITION BY owner, scope ORDER BY bucket, block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
    UNION ALL
    SELECT owner, scope, bucket, true, 0, 0, 0, 0,
      sum(deposits) OVER earlier AS deposits, sum(deposited) OVER earlier AS deposited, sum(requests) OVER earlier AS requests,
      sum(estimated) OVER earlier AS estimated, sum(claims) OVER earlier AS claims, sum(claimed) OVER earlier AS claimed,
      sum(users) OVER earlier AS users, sum(swept) OVER earlier AS swept, sum(swept_assets) OVER earlier AS swept_assets,
      sum(swept_to) OVER earlier AS swept_to, sum(valuations) OVER earlier AS valuations, sum(supply) OVER earlier AS supply,
      max(funded_to) OVER earlier AS funded_to, max(deposits_to) OVER earlier AS deposits_to, max(requests_to) OVER earlier AS requests_to
    FROM (
      SELECT owner, scope, bucket,
        sum(deposits) AS deposits, sum(deposited) AS deposited, sum(requests) AS requests,
        sum(estimated) AS estimated, sum(claims) AS claims, sum(claimed) AS claimed,
        sum(users) AS users, sum(swept) AS swept, sum(swept_assets) AS swept_assets,
        sum(swept_to) AS swept_to, sum(valuations) AS valuations, sum(supply) AS supply,
        max(funded_to) AS funded_to, max(deposits_to) AS deposits_to, max(requests_to) AS requests_to
      FROM delta
      GROUP BY owner, scope, bucket
    )
    WINDOW earlier AS (PARTITION BY owner, scope ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    QUALIFY count() OVER earlier > 0
  )
  WINDOW so_far AS (PARTITION BY owner, scope, bucket ORDER BY is_earlier DESC, block ROWS UNBOUNDED PRECEDING)
)
WHERE NOT is_earlier
