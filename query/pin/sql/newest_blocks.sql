-- The last few block records up to a block, taken back or not: of one height the newest first.
SELECT block, ts, sign
FROM records
WHERE kind = 'block' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
ORDER BY kind DESC, block DESC, seq DESC LIMIT {few:UInt64}
