-- The orders of the list of users: a row for every place that a user takes in
-- an order (sign +1) or leaves (sign -1). A log moves a user only in the orders
-- whose key it changes, so a user stands in each of the three once, where
-- sum(sign) by (list, key, user) is 1. key is the time of the first live
-- deposit or request over all vaults, or the sum of deposits or of claims; the
-- rest of what the list shows is in flows.
CREATE TABLE rankings (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  writer UInt64,
  list Enum8('' = 0, 'first' = 1, 'deposited' = 2, 'withdrawn' = 3),
  key Int256,
  user FixedString(20),
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION totals (SELECT list, sum(sign) GROUP BY list)
) ENGINE = MergeTree ORDER BY (list, key, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 1024
