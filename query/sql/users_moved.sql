-- How many users some logs brought into buckets of a list, or out of them.
SELECT toUInt32(place - 1) AS bucket, toInt32(sum(step)) AS users
FROM {db:Identifier}.records
ARRAY JOIN [{{.List}}_joined, {{.List}}_left] AS place, [1, -1] AS step
WHERE kind = 'log' AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq > {since:UInt64} AND seq <= {seq:UInt64} AND place != 0
GROUP BY place HAVING users != 0
ORDER BY bucket
{{template "by_row"}}
