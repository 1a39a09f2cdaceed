-- In which blocks the requests of some buckets were made that are in the queue. Of one
-- that was made twice, as after a reorganisation, the last one counts.
SELECT vault, bucket, groupArray(request_index) AS indexes, groupArray(made) AS blocks
FROM (
  SELECT vault, intDiv(request_index, 256) AS bucket, request_index, argMaxIf(r.block, seq, kind = 'requested' AND sign = 1) AS made
  FROM {db:Identifier}.requests AS r
  WHERE (vault, bucket) IN ({{.}}) AND open != 0 AND seq <= {lastLog:UInt64} AND r.block <= {block:UInt64}
  GROUP BY vault, request_index HAVING sum(open) > 0
)
GROUP BY vault, bucket
{{template "by_row"}}
