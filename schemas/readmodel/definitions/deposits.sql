-- The deposits of a vault by number, of a user, of a partner, and of a group by the block in which they were priced
-- or became void.
SELECT entry.1 AS list, entry.2 AS owner, entry.3 AS scope, 'deposit' AS kind, entry.4 AS key, block, log_index, sub, user,
  vault, other, partner, id, shares, assets, ts, tx AS hash, closed_block, closed_ts, closed_by,
  grouped, group_id, priced_block
FROM (
  SELECT *, toFixedString('', 20) AS everything, toInt256(least(priced_block, closed_block)) AS left_block,
    arrayJoin(arrayConcat([('vault_events', vault, everything, toInt256(id)), ('user_events', user, everything, 0)],
      if(partner = 0, [], [('partner_events', partner_owner, everything, 0)]),
      if(grouped, [('groups', vault, everything, left_block), ('groups', user, vault, left_block)], []))) AS entry
  FROM deposit
)
