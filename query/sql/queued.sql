-- A page of the withdrawal queue, oldest first. buckets is where anything is in
-- the queue, between which blocks that was asked for, and how much of it is there
-- for sure, whatever expired;{{if .Newest}} it comes from the projection queue;{{end}} until is a block up to which there
-- are enough for the page. Then which requests, out of few columns, then their
-- states.
WITH {{template "now_bucket"}} AS now_bucket,
  buckets AS (
    SELECT vault, bucket, minIf(l, l > 0) AS low, max(h) AS high, sum(o - if(early, w, 0)) AS sure
    FROM (
      SELECT vault, intDiv(request_index, 1024) AS bucket, {{template "due_bucket"}} AS due, due != 0 AND due <= now_bucket AS early,
        sum(open) AS o, sum(waiting) AS w, minIf(block, kind = 'requested') AS l, maxIf(block, kind = 'requested') AS h
      FROM {db:Identifier}.requests
      WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)){{if not .Newest}} AND seq <= {seq:UInt64} AND block <= {block:UInt64}{{end}}
      GROUP BY vault, bucket, due
    )
    GROUP BY vault, bucket HAVING sum(o) > 0
  ),
  until AS (
    SELECT min(high) FROM (SELECT high, sum(sure) OVER (ORDER BY high ROWS UNBOUNDED PRECEDING) AS enough FROM buckets)
    WHERE enough >= {limit:UInt64} + {offset:UInt64}
  ),
  wanted AS (
    SELECT vault, request_index
    FROM {db:Identifier}.requests
    WHERE (vault, intDiv(request_index, 1024)) IN (SELECT vault, bucket FROM buckets WHERE (SELECT * FROM until) = 0 OR low <= (SELECT * FROM until))
      AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    GROUP BY vault, request_index
    HAVING sum(open) > 0 AND sumIf(waiting, {{template "due"}}) = 0
    ORDER BY argMinIf((block, log_index), seq, kind = 'requested' AND sign = 1
      AND seq NOT IN (SELECT retracts FROM {db:Identifier}.requests WHERE sign = -1 AND seq <= {seq:UInt64}))
    LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
SELECT *, {{template "status"}} AS status FROM ({{template "request_states"}})
ORDER BY requested_block, log_index
