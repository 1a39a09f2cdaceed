-- The live state of each request of a batch, as of a seq.
SELECT vault, request_index, since, any(user), any(receiver), any(partner), any(shares), any(estimate), any(expires_ts),
  any(requested), any(requested_ts), any(requested_block), any(tx), any(log_index),
  any(funded), any(funded_ts), any(funded_assets), any(claimed), any(claimed_ts), any(claimed_assets),
  any(cancelled), any(cancelled_ts), any(expired), any(expired_ts)
FROM {database}.requests
WHERE (vault, request_index) IN (SELECT vault, request_index FROM wanted) AND seq <= {seq:UInt64} AND sign != 0
GROUP BY vault, request_index, since
HAVING sum(sign) > 0
