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
CREATE TABLE records (
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
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (kind, block) ORDER BY (kind, block, seq)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 1024
