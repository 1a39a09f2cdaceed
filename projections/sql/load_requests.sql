-- What the live logs say about each request of a batch, as of a seq.
SELECT vault, request_index, sumIf(sign, kind = 'requested'), sumIf(sign, kind = 'funded'), sumIf(sign, kind = 'claimed'),
  sumIf(sign, kind = 'cancelled'), sumIf(sign, kind = 'expired'),
  argMinIf(estimate, seq, asked), argMinIf(expires_ts, seq, asked)
FROM (
  SELECT *, kind = 'requested' AND sign = 1 AND seq NOT IN (
    SELECT retracts FROM {database}.requests
    WHERE (vault, request_index) IN (SELECT vault, request_index FROM wanted) AND seq <= {seq:UInt64} AND sign = -1) AS asked
  FROM {database}.requests
  WHERE (vault, request_index) IN (SELECT vault, request_index FROM wanted) AND seq <= {seq:UInt64} AND sign != 0
)
GROUP BY vault, request_index
