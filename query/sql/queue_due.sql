-- Which of some waiting requests have had their time.
SELECT vault, request_index, sumIf(waiting * estimate, {{template "due"}}) AS amount
FROM {db:Identifier}.requests
WHERE (vault, request_index) IN ({{.}}) AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault, request_index HAVING sumIf(waiting, {{template "due"}}) > 0
