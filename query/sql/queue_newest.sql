-- The same as queue.sql, from the projection of that name, which has a bucket
-- for never and one for every 65,536 seconds of expiry. Only the bucket that now
-- is in must be looked at row by row.
WITH if({now:UInt64} = 0, 0, 1 + intDiv({now:UInt64}, 65536)) AS now_bucket
SELECT vault, sum(if(early, o - w, o)) AS pending, sum(if(early, 0, w)) AS total, sum(if(early, 0, a)) AS amount
FROM (
  SELECT vault, sum(open) AS o, sum(waiting) AS w, sum(waiting * estimate) AS a, due != 0 AND due <= now_bucket AS early,
    if(expires_ts = 0, 0, 1 + intDiv(expires_ts, 65536)) AS due
  FROM {db:Identifier}.requests
  WHERE {vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)
  GROUP BY vault, due
  UNION ALL
  SELECT vault, sum(waiting) AS o, sum(waiting) AS w, sum(waiting * estimate) AS a, 0 AS early, 0 AS due
  FROM {db:Identifier}.requests
  WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)) AND waiting != 0
    AND expires_ts > {now:UInt64} AND expires_ts < 65536 * (1 + intDiv({now:UInt64}, 65536))
  GROUP BY vault
)
GROUP BY vault
