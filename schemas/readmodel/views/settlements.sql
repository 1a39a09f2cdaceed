-- The settlements of withdrawals: amounts that were funded together. nav has 18 decimals. They are
-- those up to the newest unit that lists has.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, shares, assets, nav,
  concat('0x', lower(hex(other))) AS funder, concat('0x', lower(hex(tx))) AS tx
FROM events
WHERE effect = 'settled' AND sign = 1 AND NOT passed AND NOT quarantined
  AND seq <= (SELECT max(seq) FROM lists WHERE list = 'cursor')
  AND seq NOT IN (SELECT retracts FROM events WHERE sign = -1 AND seq <= (SELECT max(seq) FROM lists WHERE list = 'cursor'))
