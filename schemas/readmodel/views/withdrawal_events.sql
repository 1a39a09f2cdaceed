-- The events of withdrawal requests, one row for each log. assets is the estimate of a request, or the funded or
-- claimed amount.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, toString(effect) AS event,
  concat('0x', lower(hex(vault))) AS vault,
  id AS request_id, concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time, concat('0x', lower(hex(tx))) AS tx
FROM events
WHERE effect IN ('requested', 'funded', 'claimed', 'cancelled', 'expired') AND sign = 1 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM events WHERE sign = -1)
