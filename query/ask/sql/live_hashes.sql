-- The block hashes of the live logs and samples in some blocks: of the rows of one vault at one place, the newest one
-- shows which log is there.
SELECT block, log_index, hash
FROM (
  SELECT block, log_index, hash, sign
  FROM events
  WHERE record IN ('log', 'sample') AND sub = 0 AND block IN ({blocks}) AND seq <= {seq:UInt64}
  ORDER BY block, log_index, vault, seq DESC
  LIMIT 1 BY block, log_index, vault
)
WHERE sign = 1
