-- The first few block records, taken back or not, in the order of the table: it stops at the last of them.
SELECT block, ts, seq, sign
FROM records
WHERE kind = 'block' AND seq <= {seq:UInt64}
ORDER BY kind, block, seq LIMIT {few:UInt64}
SETTINGS max_block_size = 1024
