-- The sweeps that hold one of some numbers, in the order of the chain: roundDown gives the highest of them up to to_id, or
-- the lowest where there is none.
SELECT vault, from_id, to_id, ts
FROM sweeps
WHERE roundDown(to_id, {ids:Array(UInt64)}) BETWEEN from_id AND to_id
  AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM sweeps WHERE sign = -1 AND seq <= {seq:UInt64})
ORDER BY block, log_index
