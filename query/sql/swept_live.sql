-- The highest deposit id that was swept, by vault.
SELECT vault, max(to_id) AS last
FROM (
  SELECT vault, to_id
  FROM {db:Identifier}.sweeps
  WHERE sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  GROUP BY vault, to_id HAVING sum(sign) > 0
)
GROUP BY vault
