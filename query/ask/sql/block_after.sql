-- The first indexed block after a time.
SELECT list, seq, rewrites, toString(key) AS sort_key, block, log_index, sub, user, sign, ts
FROM lists
WHERE (list = 'blocks' AND ts > {time:UInt64}) OR list = 'cursor'
ORDER BY list, owner, scope, kind, key, block, log_index, sub, user
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0
