-- What rows later than the pin added to the buckets, to be taken off again.
{{template "queue" "intDiv(block, 32768) < {edge:UInt64} AND seq > {seq:UInt64} AND seq <= {last:UInt64}"}}
{{template "by_row"}}
