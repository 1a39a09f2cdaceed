-- The changes of totals by user and vault, with the bucket of the block if the user has buckets there, else 0.
SELECT user, vault, if((user, vault) IN (SELECT user, vault FROM user_earlier), intDiv(block, {bucket:UInt64}), 0) AS bucket,
  block, ts, what, amount
FROM change
