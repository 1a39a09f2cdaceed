-- For each bucket of blocks with changes: the totals before it, and the first block after it with a change.
SELECT owner, scope, bucket,
  leadInFrame(first_block, 1, {never:UInt64}) OVER next AS later_block, leadInFrame(first_ts, 1, 0) OVER next AS later_ts,
  sum(deposits) OVER before AS deposits, sum(deposited) OVER before AS deposited,
  sum(requests) OVER before AS requests, sum(estimated) OVER before AS estimated, sum(claims) OVER before AS claims,
  sum(claimed) OVER before AS claimed, sum(users) OVER before AS users, sum(swept) OVER before AS swept,
  sum(swept_assets) OVER before AS swept_assets, sum(swept_to) OVER before AS swept_to,
  sum(valuations) OVER before AS valuations, sum(supply) OVER before AS supply,
  max(funded_to) OVER before AS funded_to, max(deposits_to) OVER before AS deposits_to,
  max(requests_to) OVER before AS requests_to
FROM (
  SELECT owner, scope, bucket, min(block) AS first_block, argMin(ts, block) AS first_ts,
    sum(deposits) AS deposits, sum(deposited) AS deposited, sum(requests) AS requests, sum(estimated) AS estimated,
    sum(claims) AS claims, sum(claimed) AS claimed, sum(users) AS users, sum(swept) AS swept,
    sum(swept_assets) AS swept_assets, sum(swept_to) AS swept_to, sum(valuations) AS valuations,
    sum(supply) AS supply, max(funded_to) AS funded_to, max(deposits_to) AS deposits_to,
    max(requests_to) AS requests_to
  FROM delta
  GROUP BY owner, scope, bucket
)
WINDOW before AS (PARTITION BY owner, scope ORDER BY bucket ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
  next AS (PARTITION BY owner, scope ORDER BY bucket ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
