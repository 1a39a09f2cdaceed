-- The state of a user over all vaults after each log that changed it: the old
-- state again with sign -1, the new one with sign +1. A state is named by the
-- seq that made it (since); it is live where sum(sign) by (user, since) is 1.
CREATE TABLE users (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  writer UInt64,
  user FixedString(20),
  since UInt64,
  deposited Int256,
  withdrawn Int256,
  first_ts UInt32,
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION live (SELECT sum(sign)),
  PROJECTION by_user (SELECT * ORDER BY user),
  PROJECTION by_first (SELECT * ORDER BY first_ts, user),
  PROJECTION by_withdrawn (SELECT * ORDER BY withdrawn, user)
) ENGINE = MergeTree ORDER BY (deposited, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
