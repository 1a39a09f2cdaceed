-- The same as queue.sql, from the projection of that name, which has a bucket
-- for never and one for every 65,536 seconds of expiry. Only where something
-- expires in the bucket that now is in are there rows to look at.
WITH {{template "now_bucket"}} AS now_bucket
SELECT vault, sum(if(early, o - w, o)) AS pending, sum(if(early, 0, w)) AS total, sum(if(early, 0, a)) AS amount
FROM (
  SELECT vault, {{template "due_bucket"}} AS due, sum(open) AS o, sum(waiting) AS w, sum(waiting * estimate) AS a, due != 0 AND due <= now_bucket AS early
  FROM {db:Identifier}.requests
  WHERE {vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)
  GROUP BY vault, due
  UNION ALL
  SELECT vault, now_bucket AS due, sum(waiting) AS o, sum(waiting) AS w, sum(waiting * estimate) AS a, 0 AS early
  FROM {db:Identifier}.requests
  WHERE (vault, intDiv(request_index, 1024)) IN (
      SELECT vault, intDiv(request_index, 1024) AS bucket
      FROM {db:Identifier}.requests
      WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)) AND {{template "due_bucket"}} = now_bucket
      GROUP BY vault, bucket HAVING sum(waiting) != 0
    )
    AND waiting != 0 AND {{template "due_bucket"}} = now_bucket AND expires_ts > {now:UInt64}
  GROUP BY vault
)
GROUP BY vault
