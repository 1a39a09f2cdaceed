-- The deposits or the withdrawal requests that name a partner, after a place in the chain, in the order of the chain.
SELECT {columns}
FROM lists
WHERE (list = {list} AND owner = {partner:FixedString(20)} AND kind = {kind:String} AND block >= {first:UInt64} AND block <= {last:UInt64}
    AND block >= {after_block:UInt64} AND (block, log_index, sub) > ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
  )
  OR list = {cursor}
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 8192, read_in_order_use_buffering = 0
