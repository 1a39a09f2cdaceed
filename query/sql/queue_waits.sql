-- The requests of some buckets that wait for their money and whose time ends.
SELECT vault, bucket, groupArray(request_index) AS indexes, groupArray(waits_for) AS amounts, groupArray(expires_ts) AS ends
FROM (
  SELECT vault, intDiv(request_index, 256) AS bucket, request_index, expires_ts, sum(waiting * estimate) AS waits_for
  FROM {db:Identifier}.requests
  WHERE (vault, bucket) IN ({{.}}) AND waiting != 0 AND expires_ts != 0 AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  GROUP BY vault, request_index, expires_ts HAVING sum(waiting) > 0
)
GROUP BY vault, bucket
{{template "by_row"}}
