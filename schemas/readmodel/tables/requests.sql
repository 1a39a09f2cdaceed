-- One row for each log about a withdrawal request: what it says, and what it
-- did to the queue. The state of a request is the fold of its live rows (those
-- that no row with sign -1 retracts): the first of a kind says what was asked,
-- and when it was funded, claimed, cancelled or expired.
--
-- user, receiver, partner and shares are of kind requested; assets were funded
-- or claimed. open is +1 where the log put the request into the queue (asked
-- for, not claimed, not cancelled, not expired unless it was funded) and -1
-- where it took it out; waiting the same for the part of the queue that is not
-- funded yet. estimate and expires_ts are those of the request in the rows of
-- kind requested and where waiting is not 0. Within a vault seq order is chain
-- order, so sums over block <= X are the queue as of X.
CREATE TABLE requests (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  vault FixedString(20),
  request_index UInt64 CODEC(Delta, LZ4),
  kind Enum8('' = 0, 'requested' = 1, 'funded' = 2, 'claimed' = 3, 'cancelled' = 4, 'expired' = 5),
  user FixedString(20),
  receiver FixedString(20),
  partner UInt32,
  shares Int256,
  assets Int256,
  estimate Int256,
  expires_ts UInt64,
  open Int8,
  waiting Int8,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32,
  INDEX ix_expires expires_ts TYPE minmax GRANULARITY 1,
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION queue (
    SELECT vault, intDiv(request_index, 1024), if(expires_ts = 0, 0, 1 + intDiv(expires_ts, 65536)),
      sum(open), sum(waiting), sum(waiting * estimate)
    GROUP BY vault, intDiv(request_index, 1024), if(expires_ts = 0, 0, 1 + intDiv(expires_ts, 65536))
  ),
  PROJECTION keys_user (SELECT user, vault, request_index ORDER BY user)
) ENGINE = MergeTree ORDER BY (vault, request_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 1024
