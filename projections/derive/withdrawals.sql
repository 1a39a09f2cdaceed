-- The live rows of some requests that are open after a block.
SELECT vault, request_index, owner, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block, toString(closed_by)
FROM withdrawals
WHERE list = 'queue' AND key > {ancestor:UInt64} AND (vault, request_index) IN (SELECT vault, request_index FROM wanted)
GROUP BY vault, request_index, owner, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block, closed_by
HAVING sum(sign) > 0
