-- What the live ones of some logs change together before a place in the list.
SELECT sum(sign * change) AS sum
FROM ({logs})
WHERE (block, log_index, seq) < ({before_block:UInt64}, {before_log:UInt32}, {before_seq:UInt64})
