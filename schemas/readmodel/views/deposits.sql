-- The deposits, with the sweep that took each to the custodian. Deposits of a group have no shares before they are
-- priced (priced_block). Those that were withdrawn before that are void: they are in no total, and not here.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS deposit_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS sender, partner, assets,
  if(priced_block = {never:UInt64}, NULL, shares) AS shares, if(grouped AND priced_block != {never:UInt64}, priced_block, NULL) AS priced_block,
  if(closed_by = 'sweep', closed_block, NULL) AS swept_block,
  if(closed_by = 'sweep', toDateTime(closed_ts, 'UTC'), NULL) AS swept_time,
  concat('0x', lower(hex(hash))) AS tx
FROM lists FINAL
WHERE list = 'vault_events' AND kind = 'deposit' AND closed_by != 'void'
