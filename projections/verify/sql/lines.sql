-- What the rows of events say in words, of a range of seqs.
SELECT {line} AS line
FROM events
WHERE seq >= {from:UInt64} AND seq <= {to:UInt64}
ORDER BY seq, sub, line
