-- The last block between two others that has a log or a sample up to a time, because not every block has a block
-- record. An orphaned block does no harm: the result only divides the logs by time.
SELECT max(block) AS last_block
FROM events
WHERE record IN ('log', 'sample') AND block > {after:UInt64} AND block < {before:UInt64} AND ts <= {time:UInt64} AND seq <= {seq:UInt64} AND sign = 1
  AND seq NOT IN (SELECT retracts FROM events WHERE record IN ('log', 'sample') AND block > {after:UInt64} AND block < {before:UInt64} AND sign = -1 AND seq <= {seq:UInt64})
