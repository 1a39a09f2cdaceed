-- A page of the requests of a vault whose numbers do not grow along the chain, in a block range, newest first. The list
-- is in the order of the numbers, so all of the range is read.
SELECT {columns}
FROM lists
WHERE ((list = {list} AND owner = {vault:FixedString(20)} AND block >= {first:UInt64} AND block <= {last:UInt64}
    AND (block, log_index, sub) < ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
  )
  OR list = {cursor})
  AND (block >= {first:UInt64} AND block <= {last:UInt64} OR block >= {lately:UInt64})
ORDER BY {order of blocks}
LIMIT {rows:UInt64}
SETTINGS optimize_move_to_prewhere = 0
