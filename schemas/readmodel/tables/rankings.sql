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
CREATE TABLE rankings (
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
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (list, bucket) ORDER BY (list, bucket, key, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, index_granularity = 256, min_compress_block_size = 16384
