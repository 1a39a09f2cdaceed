-- The valuations of vaults. nav has 18 decimals.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, all_nav AS nav,
  all_assets AS total_assets, all_shares AS total_supply,
  concat('0x', lower(hex(other))) AS updater, concat('0x', lower(hex(tx))) AS tx
FROM valued
