-- Derived: the withdrawal requests, in the two orders in which they are asked for.
--
--   list    user     key               one live row for each request
--   queue   zero     closed_block
--   user    owner    requested_block
--
-- The blocks say from when on a request was asked for, funded and closed (readmodel.Never: not yet), and closed_by by what.
-- It is in the queue at block X when requested_block <= X and closed_block > X and it has not lapsed: expires_ts = 0, or
-- expires_ts is after the time of X, or funded_block <= X. (requested_block, requested_log) is the place of the log that asked
-- for it, and its name. What is open lies together at the end of the queue, and a granule is read for a past block only
-- when it holds a row of the answer.
CREATE TABLE withdrawals (
  sign Int8,
  list Enum8('cursor' = 0, 'queue' = 1, 'user' = 2),
  user FixedString(20),
  key UInt64,
  requested_log UInt32,
  vault FixedString(20),
  request_index UInt64,
  owner FixedString(20),
  estimate Int256,
  expires_ts UInt64,
  requested_block UInt64,
  funded_block UInt64,
  closed_block UInt64,
  closed_by Enum8('' = 0, 'claimed' = 3, 'cancelled' = 4, 'expired' = 5),
  seq UInt64,
  writer UInt64,
  fence_seq UInt64,
  fence_block UInt64,
  fence_before UInt64,
  INDEX asked requested_block TYPE minmax GRANULARITY 1
) ENGINE = CollapsingMergeTree(sign) ORDER BY (list, user, key, requested_log, vault, request_index)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512
