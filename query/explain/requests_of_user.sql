-- The withdrawal requests of a user, in all vaults or one; each counts as 1 or as its estimate. If several live
-- requests have the same id, the first one counts, also when other users made the others.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, if({measure:String} = 'count', toInt256(1), assets) AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'requested' AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND (vault, id, (seq, sub)) IN (
    SELECT vault, id, argMin((seq, sub), (block, log_index, sub))
    FROM events
    WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND effect = 'requested' AND sign = 1 AND seq NOT IN ({gone})
      AND (vault, id) IN (
        SELECT vault, id FROM events
        WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
          AND effect = 'requested' AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)}))
    GROUP BY vault, id
  )
UNION ALL
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(0)
FROM events
WHERE {retracted:Bool} AND record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'requested' AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND (sign = -1 OR seq IN ({gone} AND user = {user:FixedString(20)}))
