-- The sweeps: deposits first_deposit to last_deposit of the vault went to the custodian.
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault,
  id AS first_deposit, id_to AS last_deposit, assets,
  concat('0x', lower(hex(other))) AS custodian, concat('0x', lower(hex(hash))) AS tx
FROM lists FINAL
WHERE list = 'vault_events' AND kind = 'sweep'
