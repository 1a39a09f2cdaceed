-- A page of the users of now, out of the buckets that it lies in. What the page
-- shows of its users is in flows.
WITH page AS (
    SELECT user
    FROM {db:Identifier}.rankings
    PREWHERE list = '{{.List}}' AND bucket IN {buckets:Array(UInt32)}
    WHERE seq <= {seq:UInt64}
    GROUP BY key, user HAVING sum(sign) > 0
    ORDER BY key {{if .Descending}}DESC{{else}}ASC{{end}}, user LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
{{template "users" "AND user IN (SELECT user FROM page)"}}
ORDER BY {{template "user_order" .}}
{{template "by_row"}}
