-- The rows of a table of facts or of the spine in a range of seqs, and the seqs that they have.
SELECT count(), uniqExact(seq) FROM {table} WHERE seq >= {from:UInt64} AND seq <= {to:UInt64}
