-- How many of the deposits in some ranges of vaults' numbers were there at a block, what
-- they sum up to, the last number of all that ever were, and how many came later.
SELECT vault, sumIf(sign, block <= {block:UInt64}) AS total, sumIf(sign * assets, block <= {block:UInt64}) AS amount,
  maxIf(deposit_id, block <= {block:UInt64}) AS newest, sumIf(sign, block > {block:UInt64}) AS later
FROM {db:Identifier}.deposits
WHERE ({{.}}) AND seq <= {lastLog:UInt64}
GROUP BY vault
{{template "by_number"}}
