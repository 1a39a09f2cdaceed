-- Live sweeps.
SELECT seq, lower(hex(vault)), from_id, to_id, toString(assets), block, ts, lower(hex(tx)), log_index
FROM {database}.sweeps
WHERE seq <= {seq:UInt64} AND sign = 1
  AND seq NOT IN (SELECT retracts FROM {database}.sweeps WHERE seq <= {seq:UInt64} AND sign = -1)
ORDER BY seq
