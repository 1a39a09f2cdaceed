-- A page of the deposits of a user or a partner in a block range, newest first, without deposits that were void by the
-- last block.
SELECT {columns}
FROM lists
WHERE (list = {list} AND owner = {owner:FixedString(20)} AND kind = 'deposit'
    AND block <= {last:UInt64} AND (closed_by != 'void' OR closed_block > {last:UInt64})
    AND block >= {first:UInt64} -- if first
    AND block <= {after_block:UInt64} AND (block, log_index, sub) < ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
    AND vault = {vault:FixedString(20)} -- if vault
  )
  OR list = {cursor}
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, use_skip_indexes = 0
  , optimize_move_to_prewhere = 0 -- unless vault
