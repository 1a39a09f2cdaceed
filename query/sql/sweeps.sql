-- The sweeps of a vault that may hold deposits of an id range, oldest first.
SELECT from_id, to_id, ts
FROM {db:Identifier}.sweeps
WHERE vault = toFixedString(unhex({vault:String}), 20) AND to_id >= {first:UInt64} AND from_id <= {last:UInt64}
  AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.sweeps
    WHERE vault = toFixedString(unhex({vault:String}), 20) AND sign = -1 AND seq <= {seq:UInt64})
ORDER BY block, log_index
