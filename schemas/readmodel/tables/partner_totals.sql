-- Derived: what was deposited in a vault through a partner, as running totals: a row is true from block from_block up to
-- and without block until_block (readmodel.Never: still true). At block X the row with from_block <= X < until_block answers.
CREATE TABLE partner_totals (
  sign Int8,
  partner UInt32,
  vault FixedString(20),
  from_block UInt64,
  until_block UInt64,
  deposits UInt64,
  volume Int256,
  seq UInt64,
  writer UInt64,
  fence_seq UInt64,
  fence_block UInt64,
  fence_before UInt64,
  INDEX since from_block TYPE minmax GRANULARITY 1
) ENGINE = CollapsingMergeTree(sign) ORDER BY (partner, vault, until_block)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512
