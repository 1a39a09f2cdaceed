-- The attribution values of live deposits and requests, for each vault, up to a seq. A block that was orphaned and
-- became canonical again counts once.
SELECT vault, attribution, toUInt64(sum(made)) AS deposits, toUInt64(sum(asked)) AS requests, min(block) AS first, min(ts) AS since
FROM (
  SELECT vault, attribution, block, ts, sumIf(toInt64(sign), effect = 'deposit') AS made, sumIf(toInt64(sign), effect = 'requested') AS asked
  FROM events
  WHERE attribution != toFixedString('', 32) AND effect IN ('deposit', 'requested') AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64}
  GROUP BY vault, attribution, block, ts, hash
  HAVING made + asked > 0
)
GROUP BY vault, attribution
ORDER BY deposits + requests DESC, vault, attribution
LIMIT {most:UInt64}
