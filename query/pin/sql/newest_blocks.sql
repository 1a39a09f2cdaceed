-- The last few block records up to a block, taken back or not, in the order of the table: it stops at the last of them.
SELECT block, ts, seq, sign
FROM records
WHERE kind = 'block' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
ORDER BY kind DESC, block DESC, seq DESC LIMIT {few:UInt64}
SETTINGS max_block_size = 1024
