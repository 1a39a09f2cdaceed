-- Which of some requests were asked for up to a block, as of a seq.
SELECT vault, request_index
FROM withdrawal_events
WHERE (vault, request_index) IN (SELECT vault, request_index FROM wanted) AND kind = 'requested'
  AND block <= {ancestor:UInt64} AND seq <= {before:UInt64}
GROUP BY vault, request_index
HAVING sum(sign) > 0
