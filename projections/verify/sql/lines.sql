-- The rows of events in a range of seqs, each as a line of text.
SELECT {line} AS line
FROM events
WHERE seq >= {from:UInt64} AND seq <= {to:UInt64}
ORDER BY seq, sub, line
