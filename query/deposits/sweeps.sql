-- The sweeps that hold one of some numbers, in the order of the chain.
SELECT vault, from_id, to_id, ts
FROM sweeps
WHERE arrayExists(id -> from_id <= id AND id <= to_id, {ids:Array(UInt64)})
  AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM sweeps WHERE sign = -1 AND seq <= {seq:UInt64})
ORDER BY block, log_index
