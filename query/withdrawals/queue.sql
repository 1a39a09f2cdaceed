-- A page of the queue at the newest block, oldest request first. Requests that no log has closed are stored together,
-- in this order.
SELECT {columns}
FROM lists
WHERE (list = {list} AND key = {never:UInt64} AND block <= {block:UInt64}
    AND block >= {after_block:UInt64} AND (block, log_index, sub) > ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
    AND vault = {vault:FixedString(20)} -- if vault
    AND (expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}))
  OR list = {cursor}
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, use_skip_indexes = 0
  , optimize_move_to_prewhere = 0 -- unless vault
