-- How many deposits from a block on no sweep has reached, what they sum up to, and the
-- first of their numbers, with how many rows say so.
SELECT vault, sum(sign) AS total, sum(sign * assets) AS amount, min(deposit_id) AS first, count() AS said
FROM {db:Identifier}.deposits
WHERE block >= {from:UInt64} AND {{.}} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
GROUP BY vault
{{template "whole_rows"}}
