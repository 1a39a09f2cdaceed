-- The orders of the list of users: a row for every place that a user takes in
-- an order (sign +1) or leaves (sign -1). A log moves a user only in the orders
-- whose key it changes, so a user stands in each of the three once, where
-- sum(sign) by (list, key, user) is 1. key is the time of the first live
-- deposit or request over all vaults, or the sum of deposits or of claims; the
-- rest of what the list shows is in flows. bucket follows from list, key and
-- user (readmodel.AmountBucket, TimeBucket) and never falls along the order.
-- How many users each bucket holds at a seq is in totals up to a multiple of
-- 1,048,576 near it, and in the rows between the two, which edges finds.
CREATE TABLE rankings (
  seq UInt64 CODEC(Delta, LZ4),
  row UInt8,
  sign Int8,
  writer UInt64,
  list Enum8('' = 0, 'first' = 1, 'deposited' = 2, 'withdrawn' = 3),
  bucket UInt32,
  key Int256,
  user FixedString(20),
  PROJECTION cursor (SELECT max(seq), argMax(writer, seq), min(seq), count()),
  PROJECTION totals (SELECT list, bucket, intDiv(seq, 1048576), sum(sign) GROUP BY list, bucket, intDiv(seq, 1048576)),
  PROJECTION edges (SELECT list, seq, bucket, sign ORDER BY list, seq)
) ENGINE = MergeTree ORDER BY (list, bucket, key, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_compress_block_size = 16384
