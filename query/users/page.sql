-- A page of the users of a vault (zero: of all vaults) at the newest block, by their first block or by their deposits or
-- claims.
SELECT {columns}
FROM lists
WHERE (list = {list} AND owner = {vault:FixedString(20)} AND scope = toFixedString('', 20) AND block <= {block:UInt64}
    AND key {beyond}= {after_key:Int256} AND (key, block, user) {beyond} ({after_key:Int256}, {after_block:UInt64}, {after_user:FixedString(20)}) -- if after
  )
  OR list = {cursor}
ORDER BY {order}
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0
