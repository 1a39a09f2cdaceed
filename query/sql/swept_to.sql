-- The highest deposit id that was swept, by vault.
SELECT vault, max(to_id) AS last
FROM {db:Identifier}.sweeps
WHERE sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.sweeps WHERE sign = -1 AND seq <= {seq:UInt64})
GROUP BY vault
