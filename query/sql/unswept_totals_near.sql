-- How many deposits up to a block there are in some ranges of numbers, and how
-- many live ones of later blocks: a vault numbers its deposits in the order of
-- the chain, so that after one of these no other belongs to the block.
SELECT vault, sumIf(sign, block <= {block:UInt64}) AS total, sumIf(sign * assets, block <= {block:UInt64}) AS amount,
  maxIf(deposit_id, block <= {block:UInt64}) AS newest, sumIf(sign, block > {block:UInt64}) AS later
FROM {db:Identifier}.deposits
WHERE ({{.}}) AND seq <= {seq:UInt64}
GROUP BY vault
{{template "whole_rows"}}
