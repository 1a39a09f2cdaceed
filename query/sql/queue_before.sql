-- The buckets of the queue up to a multiple of 32,768 blocks (edge is which),
-- near the pin, from the projection of that name; the rows between the two are
-- in queue_between.sql.
{{template "queue" "intDiv(block, 32768) < {edge:UInt64}"}}
