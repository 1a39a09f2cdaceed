-- A page of the deposits of a vault whose numbers do not grow along the chain, in a block range, newest first, without
-- deposits that were void by the last block. The list is in the order of the numbers, so all of the range is read.
SELECT {columns}
FROM lists
WHERE ((list = {list} AND owner = {owner:FixedString(20)} AND kind = 'deposit'
    AND block <= {last:UInt64} AND (closed_by != 'void' OR closed_block > {last:UInt64})
    AND block >= {first:UInt64} -- if first
    AND (block, log_index, sub) < ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
  )
  OR list = {cursor})
  AND (block >= {first:UInt64} AND block <= {last:UInt64} OR block >= {lately:UInt64})
ORDER BY {order of blocks}
LIMIT {rows:UInt64}
SETTINGS optimize_move_to_prewhere = 0
