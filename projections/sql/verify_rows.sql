-- Rows that say something, and their names, which are unique.
SELECT count(), uniqExact(seq, row) FROM {database}.{table} WHERE seq <= {seq:UInt64} AND sign != 0
