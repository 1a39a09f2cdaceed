-- Live deposits.
SELECT seq, lower(hex(vault)), deposit_id, lower(hex(user)), lower(hex(sender)), partner, toString(assets), toString(shares), block, ts, lower(hex(tx)), log_index
FROM {database}.deposits
WHERE seq <= {seq:UInt64} AND sign = 1
  AND seq NOT IN (SELECT retracts FROM {database}.deposits WHERE seq <= {seq:UInt64} AND sign = -1)
ORDER BY seq
