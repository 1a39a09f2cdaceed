-- One row per DepositAccepted. partner_user is +1 when the deposit makes its
-- owner a user of the partner (live deposits 0 -> 1) and -1 when a retraction
-- takes the last one away; 0 otherwise and for partner 0. They are in the order of
-- the chain, in which those that no sweep has reached lie together. A user's list
-- and a partner's are read out of by_user and by_partner, which have all that they
-- show: to look the rows of a page up in another order costs several times as
-- much as to find them. by_number counts a vault's deposits after one of them, and
-- tells in which blocks they are. Most questions are for all columns of a few rows:
-- granules and compressed blocks are small for that, and the columns are in one
-- file, since to open a file for each takes longer than to read it.
CREATE TABLE deposits (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
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
  partner_user Int8,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32,
  PROJECTION totals (
    SELECT partner, vault, intDiv(block, 4096), sum(sign), count(), sum(sign * assets), sum(partner_user), min(seq), max(seq)
    GROUP BY partner, vault, intDiv(block, 4096)
  ),
  PROJECTION by_user (
    SELECT user, block, log_index, seq, sign, retracts, vault, deposit_id, sender, partner, assets, shares, ts, tx
    ORDER BY user, block, log_index
  ),
  PROJECTION by_partner (
    SELECT partner, block, log_index, seq, sign, retracts, vault, deposit_id, user, sender, assets, shares, partner_user, ts, tx
    ORDER BY partner, block, log_index
  ),
  PROJECTION by_number (SELECT vault, deposit_id, seq, sign, block, assets ORDER BY vault, deposit_id)
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (block) ORDER BY (block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_bytes_for_wide_part = 1000000000000000, min_compress_block_size = 16384
