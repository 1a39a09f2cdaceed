-- The requests in the queue, or (unfunded) the pending ones of them, in all vaults or one; each counts as 1 or as its
-- estimate. If several live requests have the same id, the first one counts. A later log ends or funds it. The last
-- end and the last funding decide as well as the first ones would, because a request that has ended stays ended.
SELECT asked.1 AS seq, toInt8(1) AS sign, asked.2 AS block, asked.3 AS log_index, asked.4 AS sub, asked.5 AS event, vault, asked.6 AS user, asked.7 AS ts, asked.8 AS tx,
  if({measure:String} = 'count', toInt256(1), asked.9) AS change
FROM (
  SELECT vault, id, minIf((block, log_index, sub), effect = 'requested') AS place,
    argMinIf((seq, block, log_index, sub, toString(event), user, ts, tx, assets, expires), (block, log_index, sub), effect = 'requested') AS asked,
    maxIf((block, log_index, sub), effect IN ('claimed', 'cancelled', 'expired')) AS ended, maxIf((block, log_index, sub), effect = 'funded') AS funded
  FROM events
  WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND effect IN ('requested', 'funded', 'claimed', 'cancelled', 'expired') AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    AND sign = 1 AND seq NOT IN ({gone})
  GROUP BY vault, id
  HAVING countIf(effect = 'requested') > 0 AND ended < place
    AND if(funded > place, NOT {unfunded:Bool}, asked.10 = 0 OR asked.10 > {now:UInt64})
)
UNION ALL
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(0)
FROM events
WHERE {retracted:Bool} AND record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'requested' AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND (sign = -1 OR seq IN ({gone}))
