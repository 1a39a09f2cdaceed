-- Between which blocks the first of vaults' deposits are in some ranges of numbers. A
-- vault numbers them in the order of the chain.
SELECT vault, min(block) AS low, max(block) AS high
FROM (
  SELECT vault, block
  FROM {db:Identifier}.deposits
  WHERE ({{.}}) AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  ORDER BY vault, deposit_id LIMIT {scan:UInt64} BY vault LIMIT {all:UInt64}
)
GROUP BY vault
{{template "by_number"}}
