-- The buckets of the queue as of a block: the projection of that name up to the
-- last 32,768 blocks, and of those the rows (queue_within.sql). What a bucket
-- has in one part and in the other adds up. The index of blocks is of no use to
-- a projection, and was searched for longer than the rest took.
{{template "queue" "AND intDiv(block, 32768) < intDiv({block:UInt64}, 32768)"}}
SETTINGS use_skip_indexes = 0
