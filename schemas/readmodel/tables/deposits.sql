-- Fact: one row per DepositAccepted. A vault numbers its deposits, so those that no sweep has reached are one range of the
-- order, of which the index says which granules are of later blocks. A user's list and a partner's are read out of
-- by_user and by_partner, which have all that they show.
CREATE TABLE deposits (
  seq UInt64 CODEC(Delta, LZ4),
  sign Int8,
  retracts UInt64,
  writer UInt64,
  vault FixedString(20),
  deposit_id UInt64 CODEC(Delta, LZ4),
  user FixedString(20),
  sender FixedString(20),
  partner UInt32,
  assets Int256,
  shares Int256,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32,
  INDEX made block TYPE minmax GRANULARITY 1,
  PROJECTION by_user (
    SELECT user, block, log_index, seq, sign, vault, deposit_id, sender, partner, assets, shares, ts, tx
    ORDER BY user, block, log_index, seq
  ),
  PROJECTION by_partner (
    SELECT partner, block, log_index, seq, sign, vault, deposit_id, user, sender, assets, shares, ts, tx
    ORDER BY partner, block, log_index, seq
  )
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, deposit_id) ORDER BY (vault, deposit_id, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512, min_compress_block_size = 16384
