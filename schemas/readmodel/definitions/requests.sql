-- The requests: in the queue of all vaults by closing block, of a vault by number and by source id of 32 bytes, of a
-- user, of a group by the block in which they were funded or closed, and in the line of a user.
SELECT entry.1 AS list, entry.2 AS owner, entry.3 AS scope, 'requested' AS kind, entry.4 AS key, block, log_index, sub,
  user, vault, other, partner, id, shares, assets, expires, ts, hash, funded_block, funded_ts, funded_assets,
  closed_block, closed_ts, closed_by, closed_assets,
  by, grouped, group_id, source_id, matures, priced_block, priced_assets, cum_from, cum_to
FROM (
  SELECT *, toFixedString('', 20) AS everything, toInt256(least(funded_block, closed_block)) AS left_block,
    arrayJoin(arrayConcat([('queue', everything, everything, toInt256(closed_block)),
      ('requests', vault, everything, toInt256(id)), ('user_requests', user, everything, toInt256(0))],
      if(source_id = toFixedString('', 32), [],
        [('request_sources', vault, everything, reinterpretAsInt256(reverse(source_id)))]),
      if(grouped, [('groups', vault, everything, left_block), ('groups', user, vault, left_block)], []),
      if(cum_to = 0, [], [('fifo', user, vault, cum_to)]))) AS entry
  FROM request
)
