-- The seqs of the logs and samples that were retracted, whatever they are about: a seq is that of a single record.
SELECT retracts
FROM events
WHERE record IN ('log', 'sample') AND sign = -1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
