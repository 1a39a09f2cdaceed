-- All that happened to some requests, in the order of the chain: of the rows at a place the newest one says whether
-- there is a live log.
SELECT vault, request_index, kind, user, receiver, partner, shares, assets, expires_ts, block, ts, tx, log_index
FROM (
  SELECT vault, request_index, kind, user, receiver, partner, shares, assets, expires_ts, block, ts, tx, log_index, sign
  FROM withdrawal_events
  WHERE (vault, request_index) IN ({requests}) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY vault, request_index, block, log_index, seq DESC
  LIMIT 1 BY vault, request_index, block, log_index
)
WHERE sign = 1
SETTINGS optimize_use_projections = 0
