-- The running totals of vaults and of partners in each vault, and the number of users in each scope, after each block
-- that changes them: the totals before its bucket and the sums within the bucket. Those of a vault also have its newest
-- valuation and its last sweep.
SELECT 'totals' AS list, owner, scope, toInt256(if(next = 0, later_block, next)) AS key, block, ts,
  if(next = 0, later_ts, next_ts) AS closed_ts,
  earlier.deposits + within.deposits AS deposits, earlier.deposited + within.deposited AS deposited,
  earlier.requests + within.requests AS requests, earlier.estimated + within.estimated AS estimated,
  earlier.claims + within.claims AS claims, earlier.claimed + within.claimed AS claimed,
  earlier.users + within.users AS users, earlier.swept + within.swept AS swept,
  earlier.swept_assets + within.swept_assets AS swept_assets, earlier.swept_to + within.swept_to AS swept_to,
  earlier.valuations + within.valuations AS valuations, earlier.supply + within.supply AS supply,
  greatest(earlier.funded_to, within.funded_to) AS funded_to,
  greatest(earlier.deposits_to, within.deposits_to) AS deposits_to,
  greatest(earlier.requests_to, within.requests_to) AS requests_to,
  newest.1 AS shares, newest.2 AS assets, newest.3 AS nav, valued_block, newest.4 AS valued_log, newest.5 AS valued_ts,
  swept_block, swept_ts
FROM (
  SELECT owner, scope, if(owner = scope, scope, toFixedString('', 20)) AS vault, bucket, block, ts,
    leadInFrame(block, 1, 0) OVER next AS next, leadInFrame(ts, 1, 0) OVER next AS next_ts,
    sum(deposits) OVER so_far AS deposits, sum(deposited) OVER so_far AS deposited,
    sum(requests) OVER so_far AS requests, sum(estimated) OVER so_far AS estimated,
    sum(claims) OVER so_far AS claims, sum(claimed) OVER so_far AS claimed, sum(users) OVER so_far AS users,
    sum(swept) OVER so_far AS swept, sum(swept_assets) OVER so_far AS swept_assets,
    sum(swept_to) OVER so_far AS swept_to, sum(valuations) OVER so_far AS valuations,
    sum(supply) OVER so_far AS supply, max(funded_to) OVER so_far AS funded_to,
    max(deposits_to) OVER so_far AS deposits_to, max(requests_to) OVER so_far AS requests_to
  FROM delta
  WINDOW so_far AS (PARTITION BY owner, scope, bucket ORDER BY block ROWS UNBOUNDED PRECEDING),
    next AS (PARTITION BY owner, scope, bucket ORDER BY block ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
) AS within
INNER JOIN earlier USING (owner, scope, bucket)
ASOF LEFT JOIN (
  SELECT vault, block, block AS valued_block,
    argMax((all_shares, all_assets, all_nav, log_index, ts), (log_index, sub)) AS newest
  FROM valued
  GROUP BY vault, block
) AS valuation USING (vault, block)
ASOF LEFT JOIN (
  SELECT vault, block, block AS swept_block, any(ts) AS swept_ts
  FROM live
  WHERE effect = 'sweep'
  GROUP BY vault, block
) AS sweep USING (vault, block)
