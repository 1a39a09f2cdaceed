-- Which deposits the sweeps of each vault have reached: all up to a number. Sweeps are few.
SELECT vault, max(to_id) AS swept
FROM sweeps
WHERE sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM sweeps WHERE sign = -1 AND seq <= {seq:UInt64})
GROUP BY vault
