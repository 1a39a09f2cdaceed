-- What users is: who owns a live deposit or request up to a seq, since when, and what all of it adds up to.
SELECT 'member' AS list, vault, toUInt32(0) AS partner, toInt256(0) AS key, user,
  min(block) AS first_block, argMin(ts, block) AS first_ts, toInt256(0) AS deposited, toInt256(0) AS withdrawn
FROM (
  SELECT vault, user, block, ts FROM deposits
  WHERE sign = 1 AND seq <= {seq:UInt64} AND seq NOT IN (SELECT retracts FROM deposits WHERE sign = -1 AND seq <= {seq:UInt64})
  UNION ALL
  SELECT vault, user, block, ts FROM withdrawal_events
  WHERE sign = 1 AND kind = 'requested' AND seq <= {seq:UInt64}
    AND seq NOT IN (SELECT retracts FROM withdrawal_events WHERE sign = -1 AND seq <= {seq:UInt64})
)
GROUP BY vault, user
UNION ALL
SELECT 'member', toFixedString('', 20), partner, toInt256(0), user, min(block), argMin(ts, block), toInt256(0), toInt256(0)
FROM deposits
WHERE sign = 1 AND partner > 0 AND seq <= {seq:UInt64}
  AND seq NOT IN (SELECT retracts FROM deposits WHERE sign = -1 AND seq <= {seq:UInt64})
GROUP BY partner, user
UNION ALL
SELECT place.1, toFixedString('', 20), toUInt32(0), place.2, user, first_block, first_ts,
  if(place.1 = 'first', toInt256(0), deposited), if(place.1 = 'first', toInt256(0), withdrawn)
FROM (
  SELECT user, first_block, first_ts, deposited, withdrawn,
    arrayJoin(if(first_block = {never:UInt64}, [('member', toInt256(0))],
      [('member', toInt256(0)), ('first', toInt256(first_block)), ('deposited', deposited), ('withdrawn', withdrawn)])) AS place
  FROM (
    SELECT user, min(if(seen, block, {never:UInt64})) AS first_block, argMin(if(seen, ts, 0), if(seen, block, {never:UInt64})) AS first_ts,
      sum(assets * (kind = 'deposit')) AS deposited, sum(assets * (kind = 'claimed')) AS withdrawn
    FROM (
      SELECT user, block, ts, assets, 'deposit' AS kind, 1 AS seen FROM deposits
      WHERE sign = 1 AND seq <= {seq:UInt64} AND seq NOT IN (SELECT retracts FROM deposits WHERE sign = -1 AND seq <= {seq:UInt64})
      UNION ALL
      SELECT user, block, ts, assets, toString(kind) AS kind, kind = 'requested' AS seen FROM withdrawal_events
      WHERE sign = 1 AND kind IN ('requested', 'claimed') AND seq <= {seq:UInt64}
        AND seq NOT IN (SELECT retracts FROM withdrawal_events WHERE sign = -1 AND seq <= {seq:UInt64})
    )
    GROUP BY user
    HAVING first_block != {never:UInt64} OR withdrawn != 0
  )
)
