-- The block records up to a block, newest first, and if timed only those up to a time; or (later) those with a later
-- time, oldest first. The index of times skips granules of other times, but not the cursor, whose block is one of the newest.
SELECT {columns}
FROM lists
WHERE ((list = {list}
    AND key <= {block:UInt64} -- unless later
    AND ts <= {time:UInt64} -- if timed
    AND ts > {time:UInt64} -- if later
  )
  OR list = {cursor} -- unless later
  OR list = {reverse cursor} -- if later
  )
  AND (ts <= {time:UInt64} OR block >= {lately:UInt64}) -- if timed
  AND (ts > {time:UInt64} OR block >= {lately:UInt64}) -- if later
ORDER BY {order} -- unless later
ORDER BY {reverse order} -- if later
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0
  , optimize_move_to_prewhere = 0, use_skip_indexes = 0 -- unless timed, later
