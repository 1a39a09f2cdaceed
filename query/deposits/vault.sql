-- A page of the deposits of a vault in a block range, by their number, newest first, without deposits that were void
-- by the last block. The index of blocks skips granules of other blocks, but not the cursor, whose block is one of
-- the newest.
SELECT {columns}
FROM lists
WHERE ((list = {list} AND owner = {owner:FixedString(20)} AND kind = 'deposit'
    AND block <= {last:UInt64} AND (closed_by != 'void' OR closed_block > {last:UInt64})
    AND block >= {first:UInt64} -- if first
    AND key <= {after_key:Int256} AND (key, block, log_index, sub) < ({after_key:Int256}, {after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
  )
  OR list = {cursor})
  AND (block >= {first:UInt64} AND block <= {last:UInt64} OR block >= {lately:UInt64})
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0
