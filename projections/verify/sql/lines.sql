-- What the rows of a table say in words, of a range of seqs.
SELECT line
FROM ({lines})
WHERE seq >= {from:UInt64} AND seq <= {to:UInt64}
ORDER BY seq, line
