-- Derived: one live row for each withdrawal request, with the blocks from which on it was asked for, funded and closed
-- (readmodel.Never: not yet). It is in the queue at block X when requested_block <= X and closed_block > X and it has not
-- lapsed: expires_ts = 0, or expires_ts is after the time of X, or funded_block <= X. (requested_block, requested_log) is the
-- place of the log that asked for it, and its name. What is open lies together at the end of the order, and a granule
-- is read for a past block only when it holds a row of the answer.
CREATE TABLE withdrawals (
  sign Int8,
  vault FixedString(20),
  request_index UInt64,
  estimate Int256,
  expires_ts UInt64,
  requested_block UInt64,
  requested_log UInt32,
  funded_block UInt64,
  closed_block UInt64,
  seq UInt64,
  writer UInt64,
  fence_seq UInt64,
  fence_block UInt64,
  fence_before UInt64,
  INDEX asked requested_block TYPE minmax GRANULARITY 1
) ENGINE = CollapsingMergeTree(sign) ORDER BY (closed_block, vault, request_index)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 512
