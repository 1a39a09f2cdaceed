-- The events of one kind of a vault in a block range, up to a time: newest first, or (oldest) oldest first. The index of
-- times skips granules of later times, but not the cursor, whose block is one of the newest.
SELECT {columns}
FROM lists
WHERE ((list = {list} AND owner = {vault:FixedString(20)} AND kind = {kind:String} AND block <= {last:UInt64}
    AND block >= {first:UInt64} -- if first
    AND ts <= {at:Int64} -- if timed
    AND block <= {after_block:UInt64} AND (block, log_index, sub) < ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
  )
  OR list = {cursor} -- unless oldest
  OR list = {reverse cursor} -- if oldest
  )
  AND (ts <= {at:Int64} OR block >= {lately:UInt64}) -- if timed
ORDER BY {order} -- unless oldest
ORDER BY {reverse order} -- if oldest
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0
  , use_skip_indexes = 0 -- unless timed
