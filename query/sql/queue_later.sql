-- What rows later than the pin added to the buckets, to be taken off again.
{{template "queue" "AND intDiv(block, 32768) < intDiv({edge:UInt64}, 32768) AND seq > {seq:UInt64} AND seq <= {last:UInt64}"}}
{{template "by_row"}}, use_skip_indexes = 0
