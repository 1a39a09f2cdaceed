-- A page of the requests of a user, newest first, with their number; by status where one is asked for, else 'any'. A
-- request is the user's whose first live log is of the user. A place is where a log stands in the chain.
SELECT vault, request_index, count() OVER () AS total
FROM (
  SELECT vault, request_index,
    minIf(place, kind = 'requested') AS asked,
    argMinIf(user, place, kind = 'requested') AS owner,
    argMinIf(expires_ts, place, kind = 'requested') AS expires,
    arrayFirst(x -> x.1 > asked, arraySort(groupArrayIf((place, kind), kind IN ('claimed', 'cancelled', 'expired')))) AS end,
    countIf(kind = 'requested') AS requested,
    arrayExists(x -> x > asked, groupArrayIf(place, kind = 'funded')) AS funded,
    multiIf(end.1 > 0, toString(end.2), NOT funded AND expires > 0 AND expires <= {now:UInt64}, 'expired', 'queued') AS status
  FROM (
    SELECT vault, request_index, toString(kind) AS kind, user, expires_ts, bitShiftLeft(toUInt128(block), 32) + log_index AS place, sign
    FROM withdrawal_events
    WHERE (vault, request_index) IN (
        SELECT vault, request_index
        FROM withdrawal_events
        WHERE user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
          AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)}))
      AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    ORDER BY vault, request_index, block, log_index, seq DESC
    LIMIT 1 BY vault, request_index, block, log_index
  )
  WHERE sign = 1
  GROUP BY vault, request_index
)
WHERE requested > 0 AND owner = {user:FixedString(20)} AND ({status:String} = 'any' OR status = {status:String})
ORDER BY asked DESC
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS enable_analyzer = 1
