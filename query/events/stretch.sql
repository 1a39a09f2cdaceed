-- A stretch of the log, in its order: the logs that are told with their retractions, and the ends of units.
SELECT seq, retracts, boundary, record = 'block' AND sign = 1 AS indexed, told, event AS kind, quarantined, vault, user, tx, block, ts, log_index, payload
FROM (
  SELECT seq, sign, retracts, boundary, toString(kind) AS record, kind = 'log' AND NOT passed AND has({kinds:Array(UInt64)}, toUInt64(records.event)) AS told,
    toString(event) AS event, quarantined, vault, user, tx, block, ts, log_index, payload
  FROM records
  WHERE seq > {after:UInt64} AND seq <= {to:UInt64}
)
WHERE told OR boundary
ORDER BY seq
