-- The last seq of a log up to a block, and the first one of a log after it: where
-- they are in this order, and they mostly are, what is live up to the block is
-- what was live at that seq. Whole spans of blocks are in the projection spans;
-- the one that the block is in is read.
WITH intDiv({block:UInt64}, 4096) AS edge
SELECT ifNull(maxOrNullIf(hi, NOT later), 0) AS seq, ifNull(minOrNullIf(lo, later), 18446744073709551615) AS next
FROM (
  SELECT intDiv(block, 4096) > edge AS later, min(seq) AS lo, max(seq) AS hi
  FROM {db:Identifier}.records
  WHERE kind = 'log' AND intDiv(block, 4096) != edge
  GROUP BY kind, intDiv(block, 4096)
  UNION ALL
  SELECT block > {block:UInt64} AS later, min(seq), max(seq)
  FROM {db:Identifier}.records
  WHERE kind = 'log' AND block >= edge * 4096 AND block < (edge + 1) * 4096
  GROUP BY later
)
