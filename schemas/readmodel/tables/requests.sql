-- One row for each log about a withdrawal request: what it says, and what it
-- did to the queue. The state of a request is the fold of its live rows (those
-- that no row with sign -1 retracts): the first of a kind says what was asked,
-- and when it was funded, claimed, cancelled or expired.
--
-- user, receiver, partner and shares are of kind requested (user is 0 in a
-- request that was there already, so that it is in nobody's list twice); assets
-- were funded or claimed. open is +1 where the log put the request into the queue (asked
-- for, not claimed, not cancelled, not expired unless it was funded) and -1
-- where it took it out; waiting the same for the part of the queue that is not
-- funded yet. estimate and expires_ts are those of the request in the rows of
-- kind requested and where waiting is not 0. Within a vault seq order is chain
-- order, so sums over block <= X are the queue as of X.
--
-- The projection queue has a row for every 256 requests of a vault and 32,768
-- blocks. The first two of its sums are sets of requests: each stands in the bit
-- of its number for as long as it is open, or waiting and able to expire, for a
-- request is so once or not at all. Sums wrap at 2^256, so that bit 255 is no
-- other than the rest. The rows between a block and the nearer end of such blocks
-- are in records. A page shows requests from here and there, for which granules
-- and compressed blocks are small, and the columns in one file.
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
  PROJECTION queue (
    SELECT vault, intDiv(request_index, 256), intDiv(block, 32768),
      sum(open * bitShiftLeft(toInt256(1), request_index % 256)),
      sum(waiting * (expires_ts != 0) * bitShiftLeft(toInt256(1), request_index % 256)),
      sum(waiting), sum(waiting * estimate), minIf(block, kind = 'requested'), maxIf(block, kind = 'requested'), max(seq)
    GROUP BY vault, intDiv(request_index, 256), intDiv(block, 32768)
  ),
  PROJECTION keys_user (
    SELECT user, block, log_index, seq, sign, retracts, vault, request_index
    ORDER BY user, block, log_index
  )
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, request_index) ORDER BY (vault, request_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_bytes_for_wide_part = 1000000000000000, min_compress_block_size = 16384
