-- The live rows of some requests that are open after a block.
SELECT vault, request_index, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block
FROM withdrawals
WHERE closed_block > {ancestor:UInt64} AND (vault, request_index) IN (SELECT vault, request_index FROM wanted)
GROUP BY vault, request_index, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block
HAVING sum(sign) > 0
