-- The sum of the changes of those live logs that come before a place in the list.
SELECT toString(sum(sign * change)) AS amount
FROM ({logs})
WHERE (block, log_index, sub, seq) < ({before_block:UInt64}, {before_log:UInt32}, {before_sub:UInt8}, {before_seq:UInt64})
