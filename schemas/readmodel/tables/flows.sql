-- What each log did to one user in one vault, as signed differences: a deposit,
-- a withdrawal request or a claim. Within a vault seq order is chain order, so
-- sums over block <= X are the state as of X. vault_user is +1 on the first
-- live deposit or request of the user in the vault (first_ts then is its block
-- time) and -1 (first_ts: minus that time) when the last one is taken back:
-- sum(first_ts) is the first-seen time wherever sum(vault_user) = 1. One user is
-- asked about, or those of a block, who have a few rows each: granules and
-- compressed blocks are small for that, and the columns in one file. How many
-- users a vault had at a block is in totals up to the 4,096 blocks that it is
-- among, and of those in records.
CREATE TABLE flows (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  writer UInt64,
  vault FixedString(20),
  user FixedString(20),
  deposits Int8,
  deposited Int256,
  requests Int8,
  estimated Int256,
  withdrawn Int256,
  vault_user Int8,
  first_ts Int64,
  block UInt64 CODEC(Delta, LZ4),
  PROJECTION totals (
    SELECT vault, intDiv(block, 4096), sum(vault_user), sum(deposited), sum(withdrawn), max(seq)
    GROUP BY vault, intDiv(block, 4096)
  )
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (user) ORDER BY (user, vault, block, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 128, min_bytes_for_wide_part = 1000000000000000, min_compress_block_size = 4096, max_compress_block_size = 16384
