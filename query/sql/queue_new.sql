-- What the rows after a seq add to the buckets.
{{template "queue" "AND seq > {since:UInt64} AND seq <= {seq:UInt64}"}}
{{template "by_row"}}
