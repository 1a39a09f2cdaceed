-- The events of withdrawal requests and the instant withdrawals, which have no request, one row for each effect of a
-- log. assets is the estimate of a request, or the funded, claimed or instantly withdrawn amount. Claims and instant
-- withdrawals come from lists, with the user and the amount that follow from the request if the log of a claim does not
-- contain them. The other events come from events, up to the newest unit that lists has.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, toString(effect) AS event,
  concat('0x', lower(hex(vault))) AS vault,
  id AS request_id, concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time, concat('0x', lower(hex(tx))) AS tx
FROM events
WHERE effect IN ('requested', 'funded', 'cancelled', 'expired') AND sign = 1 AND NOT passed AND NOT quarantined
  AND seq <= (SELECT max(seq) FROM lists WHERE list = 'cursor')
  AND seq NOT IN (SELECT retracts FROM events WHERE sign = -1 AND seq <= (SELECT max(seq) FROM lists WHERE list = 'cursor'))
UNION ALL
SELECT toDateTime(ts, 'UTC'), block, log_index, toString(kind), concat('0x', lower(hex(vault))), id,
  concat('0x', lower(hex(user))), concat('0x', lower(hex(other))), partner, shares, assets, NULL, concat('0x', lower(hex(hash)))
FROM lists FINAL
WHERE list = 'user_events' AND kind IN ('claimed', 'instant')
