-- A page of the users of now, out of the buckets that it lies in: who they are
-- and the key of the order.
SELECT user, key
FROM {db:Identifier}.rankings
PREWHERE list = '{{.List}}' AND bucket IN {buckets:Array(UInt32)}
WHERE seq <= {seq:UInt64}
GROUP BY key, user HAVING sum(sign) > 0
ORDER BY key {{if .Descending}}DESC{{else}}ASC{{end}}, user LIMIT {limit:UInt64} OFFSET {offset:UInt64}
{{template "by_row"}}
