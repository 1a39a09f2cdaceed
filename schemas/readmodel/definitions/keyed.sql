-- The requests of special vaults, with the effects that name a single request: ended is the first claim, cancellation
-- or expiry after the request, and funding is the first funding before that end.
SELECT vault, id, asked.1 AS place, asked.2 AS block, asked.3 AS log_index, asked.4 AS sub, asked.5 AS ts, asked.6 AS user, asked.7 AS other,
  asked.8 AS partner, asked.9 AS partner_owner, asked.10 AS shares, asked.11 AS assets, asked.12 AS expires,
  asked.13 AS hash, asked.14 AS by, asked.15 AS grouped, asked.16 AS group_id, asked.17 AS source_id,
  asked.18 AS matures,
  ended, funding
FROM (
  SELECT vault, id,
    argMinIf((place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, tx,
      by, grouped, group_id, source_id, matures), place, effect = 'requested') AS asked,
    arrayFirst(x -> x.1 > asked.1, arraySort(x -> x.1, groupArrayIf(
      (place, block, ts, assets, effect, no_assets), effect IN ('claimed', 'cancelled', 'expired')))) AS ended,
    arrayFirst(x -> x.1 > asked.1 AND (ended.1 = 0 OR x.1 < ended.1), arraySort(x -> x.1,
      groupArrayIf((place, block, ts, assets, no_assets), effect = 'funded'))) AS funding
  FROM about
  WHERE by != 'none' AND effect != 'requested' AND vault IN special OR effect = 'requested' AND vault IN special
  GROUP BY vault, id
  HAVING countIf(effect = 'requested') > 0
)
