CREATE DATABASE IF NOT EXISTS navlog_g7 ON CLUSTER main ENGINE = Atomic;

-- Every record of the log, one row each: count() = uniqExact(seq) = max(seq)
-- proves that nothing is missing and nothing is doubled. Block records say how
-- far the chain is indexed and what time it is there (hash is theirs); payload is the whole
-- protobuf record where no other table holds what it says: vault, decision,
-- and logs that cannot be counted (quarantined).
--
-- What a log did to the queue, to the users of its vault and to the lists of users
-- stands here too, in the order of the chain, so that a state of the past is
-- one that is known near it and the rows between. open, waiting and, where this
-- is not 0, estimate and expires_ts are those of requests, vault_user that of
-- flows, and of each list the bucket of rankings that a user left for another and
-- that other one, counted from 1; 0 for none. What a log did not do is 0, and
-- columns of nearly nothing else cost nearly nothing. The projection spans says
-- between which seqs the logs of 4,096 blocks are, and how many.
CREATE TABLE IF NOT EXISTS navlog_g7.records ON CLUSTER main (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  kind Enum8('log' = 0, 'block' = 1, 'vault' = 2, 'decision' = 3),
  event Enum8('' = 0, 'Unknown' = 1, 'DepositAccepted' = 2, 'WithdrawalRequested' = 3, 'WithdrawalFunded' = 4,
    'WithdrawalClaimed' = 5, 'WithdrawalCancelled' = 6, 'WithdrawalExpired' = 7, 'NavUpdated' = 8,
    'DepositsSwept' = 9, 'WithdrawalsSettled' = 10),
  boundary Bool,
  quarantined Bool,
  block UInt64 CODEC(Delta, LZ4),
  hash FixedString(32),
  ts UInt32 CODEC(Delta, LZ4),
  log_index UInt32,
  payload String,
  vault FixedString(20),
  request_index UInt64,
  open Int8,
  waiting Int8,
  estimate Int256,
  expires_ts UInt64,
  vault_user Int8,
  first_left UInt32,
  first_joined UInt32,
  deposited_left UInt32,
  deposited_joined UInt32,
  withdrawn_left UInt32,
  withdrawn_joined UInt32,
  PROJECTION spans (SELECT kind, intDiv(block, 4096), min(seq), max(seq), count() GROUP BY kind, intDiv(block, 4096))
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (kind, block) ORDER BY (kind, block, seq)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 1024
;

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
CREATE TABLE IF NOT EXISTS navlog_g7.deposits ON CLUSTER main (
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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (block) ORDER BY (block, log_index, seq)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_bytes_for_wide_part = 1000000000000000, min_compress_block_size = 16384
;

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
CREATE TABLE IF NOT EXISTS navlog_g7.flows ON CLUSTER main (
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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (user) ORDER BY (user, vault, block, seq)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 128, min_bytes_for_wide_part = 1000000000000000, min_compress_block_size = 4096, max_compress_block_size = 16384
;

-- The lists of users, in their orders. users is +1 in the row of a user who takes
-- a place and -1 where the user leaves it: a user stands in each of the three
-- lists once, where sum(users) by (list, key, user) is 1. key is the time of the
-- first live deposit or request over all vaults, or the sum of deposits or of
-- claims. first, deposited and withdrawn are what a row adds to what the place
-- shows beside its key, so that their sums over its rows are a line of the list
-- and no other table is asked; a log that changes these and not the key has a row
-- with users 0. sign is that of the log. bucket follows from list, key and user
-- (readmodel.AmountBucket, TimeBucket) and never falls along the order. How many
-- users each bucket holds at a seq is in totals up to a multiple of 1,048,576
-- near it, and between the two in records; totals counts the rows of a bucket too,
-- which decides how a page of it is read. In the list of who came first a user
-- keeps a place, and whoever came early has added a row for each log since: the
-- projection came_first adds these up. Of the other lists, whose places change, it
-- has no more than the buckets.
CREATE TABLE IF NOT EXISTS navlog_g7.rankings ON CLUSTER main (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  writer UInt64,
  list Enum8('' = 0, 'first' = 1, 'deposited' = 2, 'withdrawn' = 3),
  bucket UInt32,
  key Int256,
  user FixedString(20),
  users Int8,
  first Int64,
  deposited Int256,
  withdrawn Int256,
  PROJECTION totals (SELECT list, bucket, intDiv(seq, 1048576), sum(users), count() GROUP BY list, bucket, intDiv(seq, 1048576)),
  PROJECTION came_first (
    SELECT list, bucket, if(list = 'first', toUInt32(key), 0), if(list = 'first', user, toFixedString('', 20)),
      sum(users), sum(deposited), sum(withdrawn), max(seq)
    GROUP BY list, bucket, if(list = 'first', toUInt32(key), 0), if(list = 'first', user, toFixedString('', 20))
  )
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (list, bucket) ORDER BY (list, bucket, key, user)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_compress_block_size = 16384
;

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
CREATE TABLE IF NOT EXISTS navlog_g7.requests ON CLUSTER main (
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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (vault, request_index) ORDER BY (vault, request_index, seq)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_bytes_for_wide_part = 1000000000000000, min_compress_block_size = 16384
;

-- One row per NavUpdated; nav_per_share has 18 decimals. The columns are in one
-- file: mostly a page of a vault's is asked for, or its newest.
CREATE TABLE IF NOT EXISTS navlog_g7.navs ON CLUSTER main (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (vault, block) ORDER BY (vault, block, log_index, seq)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_bytes_for_wide_part = 1000000000000000
;

-- One row per DepositsSwept: deposits from_id to to_id of the vault, both
-- included, left for the custodian at ts.
CREATE TABLE IF NOT EXISTS navlog_g7.sweeps ON CLUSTER main (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  vault FixedString(20),
  from_id UInt64,
  to_id UInt64,
  assets Int256,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (vault, from_id) ORDER BY (vault, from_id, seq)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
;
