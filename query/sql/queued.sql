-- A page of the withdrawal queue, oldest first: the keys first, out of few
-- columns, then their states.
SELECT {{template "request_state"}}, {{template "status"}} AS status
FROM {db:Identifier}.requests
WHERE (vault, request_index) IN (
    SELECT vault, request_index
    FROM {db:Identifier}.requests
    WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
      AND requested > 0 AND {{template "status"}} = 'queued'
      AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    GROUP BY vault, request_index, requested_block, log_index HAVING sum(sign) > 0
    ORDER BY requested_block, log_index LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
  AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY {{template "request_state"}} HAVING sum(sign) > 0
ORDER BY requested_block, log_index
