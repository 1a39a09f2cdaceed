-- Derived: the users, in the orders in which they are asked for. A user is whoever owns a live deposit or withdrawal
-- request.
--
--   list       vault, partner         key               one live row for each
--   member     of all (0, 0)          0                 user, or somebody who only claimed an amount, whose
--                                                       first_block is readmodel.Never
--   member     of a vault or partner  0                 user of it
--   first      0, 0                   first_block       user
--   deposited  0, 0                   deposited         user
--   withdrawn  0, 0                   withdrawn         user
--
-- first_block and first_ts say when the user first deposited or asked there. deposited and withdrawn are sums over all
-- vaults at the newest block, in the rows of member 0, 0 and of the lists by them; elsewhere 0.
CREATE TABLE users (
  sign Int8,
  list Enum8('cursor' = 0, 'member' = 1, 'first' = 2, 'deposited' = 3, 'withdrawn' = 4),
  vault FixedString(20),
  partner UInt32,
  key Int256,
  user FixedString(20),
  first_block UInt64,
  first_ts UInt32,
  deposited Int256,
  withdrawn Int256,
  seq UInt64,
  writer UInt64,
  fence_seq UInt64,
  fence_block UInt64,
  fence_before UInt64
) ENGINE = CollapsingMergeTree(sign) ORDER BY (list, vault, partner, key, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512
