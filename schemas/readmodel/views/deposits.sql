-- The deposits, and when a sweep took each to the custodian.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS deposit_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS sender, partner, assets, shares,
  if(swept, closed_block, NULL) AS swept_block, if(swept, toDateTime(closed_ts, 'UTC'), NULL) AS swept_time,
  concat('0x', lower(hex(tx))) AS tx
FROM deposit
