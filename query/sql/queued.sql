-- A page of the withdrawal queue, oldest first: where there is anything in the
-- queue, then which requests, out of few columns, then their states.{{if .Newest}}
-- buckets comes from the projection queue.{{end}}
WITH buckets AS (
    SELECT vault, intDiv(request_index, 1024) AS bucket
    FROM {db:Identifier}.requests
    WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)){{if not .Newest}} AND seq <= {seq:UInt64} AND block <= {block:UInt64}{{end}}
    GROUP BY vault, bucket HAVING sum(open) > 0
  ),
  wanted AS (
    SELECT vault, request_index
    FROM {db:Identifier}.requests
    WHERE (vault, intDiv(request_index, 1024)) IN (SELECT vault, bucket FROM buckets) AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    GROUP BY vault, request_index
    HAVING sum(open) > 0 AND sumIf(waiting, {{template "due"}}) = 0
    ORDER BY argMinIf((block, log_index), seq, kind = 'requested' AND sign = 1
      AND seq NOT IN (SELECT retracts FROM {db:Identifier}.requests WHERE sign = -1 AND seq <= {seq:UInt64}))
    LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
SELECT *, {{template "status"}} AS status FROM ({{template "request_states"}})
ORDER BY requested_block, log_index
