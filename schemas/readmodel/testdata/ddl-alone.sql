CREATE DATABASE IF NOT EXISTS navlog_g7 ENGINE = Atomic;

-- The spine: every record of the log, one row each, so that count() = uniqExact(seq) = max(seq) proves that nothing is
-- missing and nothing is doubled. It is the commit point: the rows of a unit go into all other tables first and into this
-- one last, so that its newest seq is the state that may be served. Block records say how far the chain is indexed and
-- what time it is there. hash is that of the block: of a block record its own, of a log that of the block it is in.
-- payload is the whole protobuf record where no other table holds what it says: vault, decision, WithdrawalsSettled, and
-- logs that cannot be counted (quarantined). Lists of events are read in the order of this table, newest first; vault,
-- user (zero where a log has none) and tx choose among them, and the index named finds the few parts that have a user or
-- a transaction. The index numbered is for streams, which follow the log by seq. passed: the record is of a vault that
-- joined after this generation was derived; no other table has it, and the next generation will.
CREATE TABLE IF NOT EXISTS navlog_g7.records (
  seq UInt64 CODEC(Delta, LZ4),
  sign Int8,
  retracts UInt64,
  writer UInt64,
  kind Enum8('log' = 0, 'block' = 1, 'vault' = 2, 'decision' = 3),
  event Enum8('' = 0, 'Unknown' = 1, 'DepositAccepted' = 2, 'WithdrawalRequested' = 3, 'WithdrawalFunded' = 4,
    'WithdrawalClaimed' = 5, 'WithdrawalCancelled' = 6, 'WithdrawalExpired' = 7, 'NavUpdated' = 8,
    'DepositsSwept' = 9, 'WithdrawalsSettled' = 10),
  boundary Bool,
  quarantined Bool,
  passed Bool,
  block UInt64 CODEC(Delta, LZ4),
  hash FixedString(32),
  ts UInt32 CODEC(Delta, LZ4),
  vault FixedString(20),
  user FixedString(20),
  tx FixedString(32),
  log_index UInt32,
  payload String,
  INDEX named (user, tx) TYPE bloom_filter GRANULARITY 1,
  INDEX numbered seq TYPE minmax GRANULARITY 1
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (kind, block) ORDER BY (kind, block, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 1024
;

-- Fact: one row per DepositAccepted. A vault numbers its deposits, so those that no sweep has reached are one range of the
-- order, of which the index says which granules are of later blocks. A user's list and a partner's are read out of
-- by_user and by_partner, which have all that they show.
CREATE TABLE IF NOT EXISTS navlog_g7.deposits (
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
;

-- Fact: one row for each log about a withdrawal request. receiver, partner and expires_ts are of kind requested; assets is
-- the estimate of a request, and what was funded or claimed. The state of a request at a block is the fold of its live
-- rows up to it, in the order of the chain: the first request of an index wins, the first of claimed, cancelled and
-- expired ends it, and what comes before the request or after its end changes nothing.
CREATE TABLE IF NOT EXISTS navlog_g7.withdrawal_events (
  seq UInt64 CODEC(Delta, LZ4),
  sign Int8,
  retracts UInt64,
  writer UInt64,
  vault FixedString(20),
  request_index UInt64 CODEC(Delta, LZ4),
  kind Enum8('requested' = 1, 'funded' = 2, 'claimed' = 3, 'cancelled' = 4, 'expired' = 5),
  user FixedString(20),
  receiver FixedString(20),
  partner UInt32,
  shares Int256,
  assets Int256,
  expires_ts UInt64,
  block UInt64 CODEC(Delta, LZ4),
  ts UInt32 CODEC(Delta, LZ4),
  tx FixedString(32),
  log_index UInt32,
  INDEX made block TYPE minmax GRANULARITY 1,
  PROJECTION by_user (
    SELECT user, block, log_index, seq, sign, kind, vault, request_index, assets
    ORDER BY user, block, log_index, seq
  )
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, request_index) ORDER BY (vault, request_index, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512, min_compress_block_size = 16384
;

-- Fact: one row per NavUpdated; nav_per_share has 18 decimals.
CREATE TABLE IF NOT EXISTS navlog_g7.navs (
  seq UInt64 CODEC(Delta, LZ4),
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
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, block) ORDER BY (vault, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 256
;

-- Fact: one row per DepositsSwept: deposits from_id to to_id of the vault, both included, left for the custodian at ts.
CREATE TABLE IF NOT EXISTS navlog_g7.sweeps (
  seq UInt64 CODEC(Delta, LZ4),
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
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (vault, block) ORDER BY (vault, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = ''
;

-- Derived: the withdrawal requests, in the two orders in which they are asked for.
--
--   list    user     key               one live row for each request
--   queue   zero     closed_block
--   user    owner    requested_block
--
-- The blocks say from when on a request was asked for, funded and closed (readmodel.Never: not yet), and closed_by by what.
-- It is in the queue at block X when requested_block <= X and closed_block > X and it has not lapsed: expires_ts = 0, or
-- expires_ts is after the time of X, or funded_block <= X. (requested_block, requested_log) is the place of the log that asked
-- for it, and its name. What is open lies together at the end of the queue, and a granule is read for a past block only
-- when it holds a row of the answer.
CREATE TABLE navlog_g7.withdrawals_draft (
  sign Int8,
  list Enum8('cursor' = 0, 'queue' = 1, 'user' = 2),
  user FixedString(20),
  key UInt64,
  requested_log UInt32,
  vault FixedString(20),
  request_index UInt64,
  owner FixedString(20),
  estimate Int256,
  expires_ts UInt64,
  requested_block UInt64,
  funded_block UInt64,
  closed_block UInt64,
  closed_by Enum8('' = 0, 'claimed' = 3, 'cancelled' = 4, 'expired' = 5),
  seq UInt64,
  writer UInt64,
  fence_seq UInt64,
  fence_block UInt64,
  fence_before UInt64,
  INDEX asked requested_block TYPE minmax GRANULARITY 1
) ENGINE = CollapsingMergeTree(sign) ORDER BY (list, user, key, requested_log, vault, request_index)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 512
;

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
CREATE TABLE navlog_g7.users_draft (
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
;

-- Derived: what was deposited in a vault through a partner, as running totals: a row is true from block from_block up to
-- and without block until_block (readmodel.Never: still true). At block X the row with from_block <= X < until_block answers.
CREATE TABLE navlog_g7.partner_totals_draft (
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
;

RENAME TABLE navlog_g7.users_draft TO navlog_g7.users;

DROP TABLE IF EXISTS navlog_g7.users_draft SYNC;

DROP DATABASE IF EXISTS navlog_g7;
