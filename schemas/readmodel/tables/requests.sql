-- The state of a withdrawal request after each log that changed it, old state
-- with sign -1 and new one with sign +1. A state is named by the seq of the log
-- that made it (since); taking a log back writes its state with sign -1 and the
-- one before it, by that one's own name, with sign +1. block is the block of the
-- change, in both rows: a state is live as of block X where sum(sign) by
-- (vault, request_index, since) over the rows with block <= X is 1.
--
-- Times are 0 where the thing did not happen; the counts say how often the chain
-- says it did (more than once cannot be, and is kept all the same). A request
-- with requested = 0 was never asked for (its log is missing on chain) and
-- belongs in no list. claimed_assets is the sum over all claims.
CREATE TABLE requests (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  writer UInt64,
  vault FixedString(20),
  request_index UInt64,
  since UInt64,
  user FixedString(20),
  receiver FixedString(20),
  partner UInt32,
  shares Int256,
  estimate Int256,
  expires_ts UInt64,
  requested UInt32,
  requested_ts UInt32,
  requested_block UInt64,
  tx FixedString(32),
  log_index UInt32,
  funded UInt32,
  funded_ts UInt32,
  funded_assets Int256,
  claimed UInt32,
  claimed_ts UInt32,
  claimed_assets Int256,
  cancelled UInt32,
  cancelled_ts UInt32,
  expired UInt32,
  expired_ts UInt32,
  block UInt64 CODEC(Delta, LZ4),
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION rows_user (SELECT * ORDER BY user, vault, request_index)
) ENGINE = MergeTree ORDER BY (vault, request_index, since, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
