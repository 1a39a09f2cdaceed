-- How many users each bucket of a list holds at seq: what the projection totals
-- says up to a multiple of 1,048,576 (edge is which), with the rows from there
-- up to seq (way 1), or without those after seq (way -1), which edges finds. It
-- has those apart in which a user stays in the bucket (users 0). Both parts must
-- see the same rows, for which there is a setting.
SELECT bucket, sum(n) AS users
FROM (
  SELECT bucket, sum(users) AS n
  FROM {db:Identifier}.rankings
  WHERE list = '{{.List}}' AND intDiv(seq, 1048576) < {edge:UInt64}
  GROUP BY bucket
  UNION ALL
  SELECT bucket, {way:Int64} * sum(users)
  FROM {db:Identifier}.rankings
  WHERE list = '{{.List}}' AND abs(users) = 1 AND seq >= {from:UInt64} AND seq <= {to:UInt64}
  GROUP BY bucket
)
GROUP BY bucket HAVING users > 0
ORDER BY bucket
SETTINGS enable_shared_storage_snapshot_in_query = 1
