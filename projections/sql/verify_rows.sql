-- Rows that say something, of a range of seqs, and their names (seq and row), which are unique.
SELECT count(), uniqExact(seq * 256 + row) FROM {database}.{table} WHERE seq > {after:UInt64} AND seq <= {to:UInt64} AND sign != 0
