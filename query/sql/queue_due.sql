-- Which requests of some buckets wait and have had their time.
SELECT vault, request_index, sum(waiting * estimate) AS amount
FROM {db:Identifier}.requests
WHERE (vault, intDiv(request_index, 256)) IN ({{.}}) AND waiting != 0 AND {{template "due"}} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault, request_index HAVING sum(waiting) > 0
{{template "by_row"}}
