-- Which requests of some buckets wait and have had their time, and when the next
-- of the others will have had it.
SELECT vault, bucket, groupArrayIf(request_index, over) AS indexes, groupArrayIf(waits_for, over) AS amounts, minIf(expires_ts, NOT over) AS next
FROM (
  SELECT vault, intDiv(request_index, 256) AS bucket, request_index, expires_ts, sum(waiting * estimate) AS waits_for, {{template "due"}} AS over
  FROM {db:Identifier}.requests
  WHERE (vault, bucket) IN ({{.}}) AND waiting != 0 AND expires_ts != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  GROUP BY vault, request_index, expires_ts HAVING sum(waiting) > 0
)
GROUP BY vault, bucket
{{template "by_row"}}
