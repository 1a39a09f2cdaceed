-- What withdrawals is: the requests of the live events up to a seq, in each list. A place is where a log stands in the chain.
SELECT place.1 AS list, place.2 AS user, place.3 AS key, requested_log, vault, request_index, owner, estimate, expires_ts,
  requested_block, funded_block, closed_block, closed_by
FROM (
  SELECT vault, request_index, owner, estimate, expires_ts,
    toUInt64(bitShiftRight(asked, 32)) AS requested_block, toUInt32(bitAnd(asked, 4294967295)) AS requested_log,
    if(funded = 0, {never:UInt64}, toUInt64(bitShiftRight(funded, 32))) AS funded_block,
    if(closed.1 = 0, {never:UInt64}, toUInt64(bitShiftRight(closed.1, 32))) AS closed_block,
    closed.2 AS closed_by,
    arrayJoin([('queue', toFixedString('', 20), closed_block), ('user', owner, requested_block)]) AS place
  FROM (
    SELECT vault, request_index,
      argMinIf(user, place, kind = 'requested') AS owner,
      argMinIf(assets, place, kind = 'requested') AS estimate,
      argMinIf(expires_ts, place, kind = 'requested') AS expires_ts,
      minIf(place, kind = 'requested') AS asked,
      arrayFirst(x -> x.1 > asked, arraySort(groupArrayIf((place, toString(kind)), kind IN ('claimed', 'cancelled', 'expired')))) AS closed,
      arrayFirst(x -> x > asked AND (closed.1 = 0 OR x < closed.1), arraySort(groupArrayIf(place, kind = 'funded'))) AS funded
    FROM (
      SELECT vault, request_index, kind, user, assets, expires_ts, bitShiftLeft(toUInt128(block), 32) + log_index AS place
      FROM withdrawal_events
      WHERE sign = 1 AND seq <= {seq:UInt64}
        AND seq NOT IN (SELECT retracts FROM withdrawal_events WHERE sign = -1 AND seq <= {seq:UInt64})
    )
    GROUP BY vault, request_index
    HAVING countIf(kind = 'requested') > 0
  )
)
