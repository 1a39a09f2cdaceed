-- Fact: one row for each log about a withdrawal request. receiver, partner and expires_ts are of kind requested; assets is
-- the estimate of a request, and what was funded or claimed. The state of a request at a block is the fold of its live
-- rows up to it, in the order of the chain: the first request of an index wins, the first of claimed, cancelled and
-- expired ends it, and what comes before the request or after its end changes nothing.
CREATE TABLE withdrawal_events (
  seq UInt64 CODEC(Delta, LZ4),
  sign Int8,
  retracts UInt64,
  writer UInt64,
  vault FixedString(20),
  request_index UInt64 CODEC(Delta, LZ4),
  kind Enum8('requested' = 1, 'funded' = 2, 'claimed' = 3, 'cancelled' = 4, 'expired' = 5),
  user FixedString(20),
  receiver FixedString(20),
  partner UInt32,
  shares Int256,
  assets Int256,
  expires_ts UInt64,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32,
  INDEX made block TYPE minmax GRANULARITY 1,
  PROJECTION by_user (
    SELECT user, block, log_index, seq, sign, kind, vault, request_index, assets
    ORDER BY user, block, log_index, seq
  )
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, request_index) ORDER BY (vault, request_index, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512, min_compress_block_size = 16384
