-- The same out of the sweeps that nothing took back.
SELECT vault, max(to_id) AS last, max(time) AS last_ts, toUInt64(0) AS lost, toUInt32(0) AS lost_ts
FROM (
  SELECT vault, to_id, ts AS time
  FROM {db:Identifier}.sweeps
  WHERE sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  GROUP BY vault, to_id, time HAVING sum(sign) > 0
)
GROUP BY vault
{{template "by_row"}}
