-- What withdrawals is: the requests of the live events up to a seq. A place is where a log stands in the chain.
SELECT vault, request_index, estimate, expires_ts,
  toUInt64(bitShiftRight(asked, 32)) AS requested_block, toUInt32(bitAnd(asked, 4294967295)) AS requested_log,
  if(funded = 0, {never:UInt64}, toUInt64(bitShiftRight(funded, 32))) AS funded_block,
  if(closed = 0, {never:UInt64}, toUInt64(bitShiftRight(closed, 32))) AS closed_block
FROM (
  SELECT vault, request_index,
    argMinIf(assets, place, kind = 'requested') AS estimate,
    argMinIf(expires_ts, place, kind = 'requested') AS expires_ts,
    minIf(place, kind = 'requested') AS asked,
    arrayFirst(x -> x > asked, arraySort(groupArrayIf(place, kind IN ('claimed', 'cancelled', 'expired')))) AS closed,
    arrayFirst(x -> x > asked AND (closed = 0 OR x < closed), arraySort(groupArrayIf(place, kind = 'funded'))) AS funded
  FROM (
    SELECT vault, request_index, kind, assets, expires_ts, bitShiftLeft(toUInt128(block), 32) + log_index AS place
    FROM withdrawal_events
    WHERE sign = 1 AND seq <= {seq:UInt64}
      AND seq NOT IN (SELECT retracts FROM withdrawal_events WHERE sign = -1 AND seq <= {seq:UInt64})
  )
  GROUP BY vault, request_index
  HAVING countIf(kind = 'requested') > 0
)
