-- The last rows of the list of blocks up to a block, newest first, after the cursor that ends the table.
SELECT list, seq, rewrites, toString(key) AS sort_key, block, log_index, sub, user, sign, ts
FROM lists
WHERE (list = 'blocks' AND key <= {block:UInt64}) OR list = 'cursor_end'
ORDER BY list DESC, owner DESC, scope DESC, kind DESC, key DESC, block DESC, log_index DESC, sub DESC, user DESC
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0, use_skip_indexes = 0
