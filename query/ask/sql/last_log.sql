-- The last block between two with a log or a sample up to a time: not every block has a record of its own. A block that was orphaned does
-- no harm: what is asked is a block number that divides the logs by their time.
SELECT max(block) AS last_block
FROM events
WHERE record IN ('log', 'sample') AND block > {after:UInt64} AND block < {before:UInt64} AND ts <= {time:UInt64} AND seq <= {seq:UInt64} AND sign = 1
  AND seq NOT IN (SELECT retracts FROM events WHERE record IN ('log', 'sample') AND block > {after:UInt64} AND block < {before:UInt64} AND sign = -1 AND seq <= {seq:UInt64})
