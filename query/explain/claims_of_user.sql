-- Payments to a user in all vaults or one: claims, and withdrawals without a request. A claim that names a request, by
-- its id or its source id, and no user pays the owner of the first live request with it, if that was made before.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, change
FROM (
  SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, assets AS change,
    effect = 'claimed' AND (by = 'id' OR by = 'source' AND source_id != toFixedString('', 32)) AND user = toFixedString('', 20) AS for_owner,
    if(by = 'id', id, 0) AS of_id, if(by = 'source', source_id, toFixedString('', 32)) AS of_source
  FROM events
  WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND effect IN ('claimed', 'instant') AND user IN ({user:FixedString(20)}, toFixedString('', 20))
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
) AS c
LEFT JOIN (
  SELECT vault, of.1 AS of_id, of.2 AS of_source, argMin(first.1, made) AS owner, min(made) AS place
  FROM (
    SELECT vault, id, argMin((user, source_id), (block, log_index, sub)) AS first, min((block, log_index, sub)) AS made,
      arrayJoin(arrayFilter(of -> of.1 = id OR of.2 != toFixedString('', 32), [(id, toFixedString('', 32)), (toUInt64(0), first.2)])) AS of
    FROM events
    WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND effect = 'requested' AND sign = 1 AND seq NOT IN ({gone})
      AND vault IN (
        SELECT vault FROM events
        WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
          AND effect = 'claimed' AND by IN ('id', 'source') AND user = toFixedString('', 20))
    GROUP BY vault, id
  )
  GROUP BY vault, of
) AS q ON c.vault = q.vault AND c.of_id = q.of_id AND c.of_source = q.of_source
WHERE if(for_owner AND q.place.1 > 0 AND q.place < (c.block, c.log_index, c.sub), q.owner, c.user) = {user:FixedString(20)}
