-- The first deposits of some vaults that no sweep has reached, ordered by vault and number. At a past block the index
-- of blocks skips granules of later deposits, but not the cursor, whose block is one of the newest.
SELECT {columns}
FROM lists
WHERE ((list = {list} AND owner IN ({vaults}) AND kind = 'deposit' AND NOT grouped AND ({groups}) AND block <= {block:UInt64}
    AND key >= {after_key:Int256} AND (key, block, log_index, sub) > ({after_key:Int256}, {after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
  )
  OR list = {cursor})
  AND (block <= {block:UInt64} OR block >= {lately:UInt64}) -- if past
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0
