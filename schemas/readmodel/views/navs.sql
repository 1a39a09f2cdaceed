-- The valuations of vaults. nav has 18 decimals. A sampled valuation has no log: log_index is 4294967295 and tx is
-- zero.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, nav,
  assets AS total_assets, shares AS total_supply,
  concat('0x', lower(hex(other))) AS updater, concat('0x', lower(hex(hash))) AS tx
FROM lists FINAL
WHERE list = 'vault_events' AND kind = 'valuation'
