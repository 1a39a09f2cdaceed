CREATE DATABASE IF NOT EXISTS navlog_g7 ENGINE = Atomic;

-- Every record of the log, one row each: count() = uniqExact(seq) = max(seq)
-- proves that nothing is missing and nothing is doubled. Block records say how
-- far the chain is indexed and what time it is there; payload is the whole
-- protobuf record where no other table holds what it says: vault, decision,
-- and logs that cannot be counted (quarantined).
CREATE TABLE IF NOT EXISTS navlog_g7.records (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  kind LowCardinality(String),
  event LowCardinality(String),
  boundary Bool,
  quarantined Bool,
  block UInt64 CODEC(Delta, LZ4),
  hash FixedString(32),
  ts UInt32 CODEC(Delta, LZ4),
  address FixedString(20),
  tx FixedString(32),
  log_index UInt32,
  payload String,
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count())
) ENGINE = MergeTree ORDER BY (kind, block, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
;

-- One row per DepositAccepted. partner_user is +1 when the deposit makes its
-- owner a user of the partner (live deposits 0 -> 1) and -1 when a retraction
-- takes the last one away; 0 otherwise and for partner 0.
CREATE TABLE IF NOT EXISTS navlog_g7.deposits (
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
  INDEX ix_block block TYPE minmax GRANULARITY 1,
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION totals (
    SELECT partner, vault, intDiv(block, 4096), sum(sign), sum(sign * assets), sum(partner_user)
    GROUP BY partner, vault, intDiv(block, 4096)
  ),
  PROJECTION rows_user (SELECT * ORDER BY user, block, log_index),
  PROJECTION rows_partner (SELECT * ORDER BY partner, block, log_index)
) ENGINE = MergeTree ORDER BY (vault, deposit_id, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
;

-- What each log did to one user in one vault, as signed differences: a deposit,
-- a withdrawal request or a claim. Within a vault seq order is chain order, so
-- sums over block <= X are the state as of X. vault_user is +1 on the first
-- live deposit or request of the user in the vault (first_ts then is its block
-- time) and -1 (first_ts: minus that time) when the last one is taken back:
-- sum(first_ts) is the first-seen time wherever sum(vault_user) = 1.
CREATE TABLE IF NOT EXISTS navlog_g7.flows (
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
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION totals (
    SELECT vault, intDiv(block, 4096), sum(vault_user), sum(deposited), sum(withdrawn)
    GROUP BY vault, intDiv(block, 4096)
  )
) ENGINE = MergeTree ORDER BY (user, vault, block, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
;

-- The state of a user over all vaults after each log that changed it: the old
-- state again with sign -1, the new one with sign +1. A state is named by the
-- seq that made it (since); it is live where sum(sign) by (user, since) is 1.
CREATE TABLE IF NOT EXISTS navlog_g7.users (
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
;

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
CREATE TABLE IF NOT EXISTS navlog_g7.requests (
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
;

-- One row per NavUpdated; nav_per_share has 18 decimals.
CREATE TABLE IF NOT EXISTS navlog_g7.navs (
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
  log_index UInt32,
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count())
) ENGINE = MergeTree ORDER BY (vault, block, log_index, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
;

-- One row per DepositsSwept: deposits from_id to to_id of the vault, both
-- included, left for the custodian at ts.
CREATE TABLE IF NOT EXISTS navlog_g7.sweeps (
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
  log_index UInt32,
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count())
) ENGINE = MergeTree ORDER BY (vault, from_id, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
;
