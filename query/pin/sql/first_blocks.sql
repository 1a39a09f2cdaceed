-- The first few block records, taken back or not: of one height the newest first.
SELECT block, ts, sign
FROM records
WHERE kind = 'block' AND seq <= {seq:UInt64}
ORDER BY block, seq DESC LIMIT {few:UInt64}
