-- A page of the users of now, out of the buckets that it lies in: the rows of a
-- place add up to what the list shows of its user beside the key of the order.
-- Of those who came first these are many, and as a time, which it is, their key
-- is quicker to group by than as an amount.
{{- $key := "key"}}{{if eq .List "first"}}{{$key = "first_ts"}}{{end}}
SELECT user,
  {{if eq .List "first"}}toUInt32(key){{else}}toUInt32(sum(r.first)){{end}} AS first_ts,
  {{if eq .List "deposited"}}key{{else}}sum(r.deposited){{end}} AS deposited,
  {{if eq .List "withdrawn"}}key{{else}}sum(r.withdrawn){{end}} AS withdrawn
FROM {db:Identifier}.rankings AS r
PREWHERE list = '{{.List}}' AND bucket {buckets:OneOf(UInt32)}
WHERE seq <= {seq:UInt64}
GROUP BY {{$key}}, user HAVING sum(users) > 0
ORDER BY {{$key}} {{if .Descending}}DESC{{else}}ASC{{end}}, user LIMIT {limit:UInt64} OFFSET {offset:UInt64}
{{template "by_row"}}
