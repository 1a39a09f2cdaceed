-- The rest of the buckets of the queue as of a block, by row. These may be some
-- hundred thousand.
{{template "queue" "AND block >= 32768 * intDiv({block:UInt64}, 32768) AND block <= {block:UInt64} AND seq <= {seq:UInt64}"}}
{{template "by_row"}}, max_threads = 2
