-- What each log did to the requests of a batch, oldest first: it made the state
-- of its own seq, or went back to the one before (since is another, or 0).
SELECT vault, request_index, seq, maxIf(since, sign > 0) AS since
FROM {database}.requests
WHERE (vault, request_index) IN (SELECT vault, request_index FROM wanted) AND seq <= {seq:UInt64} AND sign != 0
GROUP BY vault, request_index, seq
ORDER BY seq
