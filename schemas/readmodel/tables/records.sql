-- The spine: every record of the log, one row each, so that count() = uniqExact(seq) = max(seq) proves that nothing is
-- missing and nothing is doubled. It is the commit point: the rows of a unit go into all other tables first and into this
-- one last, so that its newest seq is the state that may be served. Block records say how far the chain is indexed and
-- what time it is there. hash is that of the block: of a block record its own, of a log that of the block it is in.
-- payload is the whole protobuf record where no other table holds what it says: vault, decision, WithdrawalsSettled, and
-- logs that cannot be counted (quarantined). Lists of events are read in the order of this table, newest first; vault,
-- user (zero where a log has none) and tx choose among them, and the index named finds the few parts that have a user or
-- a transaction. The index numbered is for streams, which follow the log by seq. passed: the record is of a vault that
-- joined after this generation was derived; no other table has it, and the next generation will.
CREATE TABLE records (
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
