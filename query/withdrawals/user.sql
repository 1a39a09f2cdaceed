-- A page of the requests of a user, newest first, in all vaults or one, with any status or one.
SELECT {columns}
FROM lists
WHERE (list = {list} AND owner = {user:FixedString(20)} AND block <= {block:UInt64}
    AND block <= {after_block:UInt64} AND (block, log_index, sub) < ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
    AND vault = {vault:FixedString(20)} -- if vault
    AND {status:String} = multiIf(closed_block <= {block:UInt64}, toString(closed_by), expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}, 'queued', 'expired') -- if status
  )
  OR list = {cursor}
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, use_skip_indexes = 0
  , optimize_move_to_prewhere = 0 -- unless vault, status
