-- The live deposits of a user or a partner that became void: of the effects after a deposit that void it or price its
-- group, the first one is a void. A price up to a group reaches at least as far as those before it. Only deposits that a
-- void of any block names are joined, because the join compares each with all prices and voids of its vault.
SELECT d.seq, d.sub
FROM (
  SELECT seq, sub, vault, user, id, group_id, (block, log_index, sub) AS place
  FROM events
  WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND effect = 'deposit' AND grouped AND (user = {user:FixedString(20)} OR partner = {partner:UInt32} AND partner != 0)
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    AND sign = 1 AND seq NOT IN ({gone})
    AND ((vault, id) IN (SELECT vault, id FROM events WHERE effect = 'void' AND by = 'id')
      OR (vault, user, group_id) IN (SELECT vault, user, group_id FROM events WHERE effect = 'void' AND by = 'owner'))
) AS d
INNER JOIN (
  SELECT vault, effect, by, user, id, group_id, (block, log_index, sub) AS place,
    if(by = 'up_to_group', max(if(by = 'up_to_group', group_to, 0)) OVER (PARTITION BY vault ORDER BY block, log_index, sub), group_to) AS last
  FROM events
  WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND effect IN ('void', 'priced_deposits') AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    AND sign = 1 AND seq NOT IN ({gone})
) AS e ON d.vault = e.vault
WHERE e.place > d.place
  AND multiIf(e.by = 'id', e.id = d.id, e.by = 'owner', e.user = d.user AND e.group_id = d.group_id, d.group_id BETWEEN e.group_id AND e.last)
GROUP BY d.seq, d.sub
HAVING argMin(e.effect, e.place) = 'void'
