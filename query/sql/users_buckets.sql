-- How many users each bucket of a list holds at seq, and in about how many rows:
-- what the projection totals says up to a multiple of 1,048,576 (edge is which),
-- with what the logs from there up to seq did (way 1), or without what those after
-- seq did (way -1). These are among the blocks from low to high.
SELECT bucket, toInt32(sum(n)) AS users, sum(said) AS rows
FROM (
  SELECT bucket, sum(users) AS n, count() AS said
  FROM {db:Identifier}.rankings
  WHERE list = '{{.List}}' AND intDiv(seq, 1048576) < {edge:UInt64}
  GROUP BY bucket
  UNION ALL
  SELECT toUInt32(place - 1) AS bucket, sum({way:Int64} * step), 0
  FROM {db:Identifier}.records
  ARRAY JOIN [{{.List}}_joined, {{.List}}_left] AS place, [1, -1] AS step
  WHERE kind = 'log' AND block >= {low:UInt64} AND block <= {high:UInt64} AND seq >= {from:UInt64} AND seq <= {to:UInt64} AND place != 0
  GROUP BY place
)
GROUP BY bucket HAVING users > 0
ORDER BY bucket
SETTINGS enable_shared_storage_snapshot_in_query = 1, {{template "newer_analyzer"}}
