-- Fact: one row per NavUpdated; nav_per_share has 18 decimals.
CREATE TABLE navs (
  seq UInt64 CODEC(Delta, LZ4),
  sign Int8,
  retracts UInt64,
  writer UInt64,
  vault FixedString(20),
  nav_per_share Int256,
  total_assets Int256,
  total_supply Int256,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, block) ORDER BY (vault, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 256
