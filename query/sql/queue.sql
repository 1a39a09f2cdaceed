-- The buckets of the queue as of a block: the projection of that name up to the
-- last 32,768 blocks, and of those the rows. What a bucket has in one part and
-- in the other adds up.
{{template "queue" "AND intDiv(block, 32768) < intDiv({block:UInt64}, 32768)"}}
UNION ALL
{{template "queue" "AND block >= 32768 * intDiv({block:UInt64}, 32768) AND block <= {block:UInt64} AND seq <= {seq:UInt64}"}}
