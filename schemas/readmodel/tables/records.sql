-- Every record of the log, one row each: count() = uniqExact(seq) = max(seq)
-- proves that nothing is missing and nothing is doubled. Block records say how
-- far the chain is indexed and what time it is there; payload is the whole
-- protobuf record where no other table holds what it says: vault, decision,
-- and logs that cannot be counted (quarantined).
CREATE TABLE records (
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
