-- The requests, in the queue of all vaults by the block that closed them, of a vault by their number, and of a user.
SELECT entry.1 AS list, entry.2 AS owner, 'requested' AS kind, entry.3 AS key, block, log_index, sub, user, vault,
  other, partner, id, shares, assets, expires, ts, hash, funded_block, funded_ts, funded_assets,
  closed_block, closed_ts, closed_by, closed_assets
FROM (
  SELECT *, arrayJoin([('queue', toFixedString('', 20), toInt256(closed_block)), ('requests', vault, toInt256(id)),
    ('user_requests', user, toInt256(0))]) AS entry
  FROM request
)
