-- The requests of vaults without groups and lines, with the life of each. The first request with an id counts. The
-- first claim, cancellation or expiry after it closes it, and the first funding between the two funds it.
SELECT vault, id,
  asked.2 AS block, asked.3 AS log_index, asked.4 AS sub, asked.5 AS ts, asked.6 AS user, asked.7 AS other,
  asked.8 AS partner,
  asked.9 AS partner_owner, asked.10 AS shares, asked.11 AS assets, asked.12 AS expires, asked.13 AS hash,
  asked.14 AS source_id, asked.15 AS matures,
  if(funded.1 = 0, {never:UInt64}, funded.2) AS funded_block, funded.3 AS funded_ts,
  if(funded.5, assets, funded.4) AS funded_assets,
  if(closed.1 = 0, {never:UInt64}, closed.2) AS closed_block, closed.3 AS closed_ts,
  multiIf(NOT closed.6, closed.4, funded.1 = 0, assets, funded_assets) AS closed_assets,
  closed.5 AS closed_by
FROM (
  SELECT vault, id,
    argMinIf((place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, tx,
      source_id, matures), place, effect = 'requested') AS asked,
    arrayFirst(x -> x.1 > asked.1, arraySort(x -> x.1, groupArrayIf(
      (place, block, ts, assets, effect, no_assets), effect IN ('claimed', 'cancelled', 'expired')))) AS closed,
    arrayFirst(x -> x.1 > asked.1 AND (closed.1 = 0 OR x.1 < closed.1), arraySort(x -> x.1,
      groupArrayIf((place, block, ts, assets, no_assets), effect = 'funded'))) AS funded
  FROM about
  WHERE (by != 'none' OR effect = 'requested') AND vault NOT IN special
  GROUP BY vault, id
  HAVING countIf(effect = 'requested') > 0
)
