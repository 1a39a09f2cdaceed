-- The withdrawal requests, one row each, with their state: open, funded, claimed, cancelled or expired. A request
-- that is still open after expires_time has lapsed without a log.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS request_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets AS estimate,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time,
  if(funded_block = {never:UInt64}, NULL, toDateTime(funded_ts, 'UTC')) AS funded_time, funded_assets,
  if(closed_block = {never:UInt64}, NULL, toDateTime(closed_ts, 'UTC')) AS closed_time, closed_assets,
  multiIf(closed_block != {never:UInt64}, toString(closed_by),
    funded_block != {never:UInt64}, 'funded', 'open') AS state,
  concat('0x', lower(hex(hash))) AS tx
FROM lists FINAL
WHERE list = 'requests'
