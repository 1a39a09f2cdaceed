-- How many deposits of some vaults came after the last one that was swept, in all
-- rows or in those after a seq.
SELECT vault, sum(sign) AS total, sum(sign * assets) AS amount, max(deposit_id) AS newest
FROM {db:Identifier}.deposits
WHERE ({{.}}) AND seq > {since:UInt64} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
GROUP BY vault
{{template "by_number"}}
