-- The newest sweeps of a vault.
SELECT list, seq, rewrites, block, log_index, sub, user, sign, ts
FROM lists
WHERE (list = 'vault_events' AND owner = {vault:FixedString(20)} AND kind = 'sweep' AND block <= {block:UInt64}) OR list = 'cursor_end'
ORDER BY list DESC, owner DESC, scope DESC, kind DESC, key DESC, block DESC, log_index DESC, sub DESC, user DESC
LIMIT {rows:UInt64}
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0, optimize_move_to_prewhere = 0, use_skip_indexes = 0
