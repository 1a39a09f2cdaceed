-- The place of each user in each list, and its bucket; a user stands in all
-- three, once.
SELECT lower(hex(user)), countIf(places = 1), max(places),
  toString(sumIf(key, list = 'deposited')), toString(sumIf(key, list = 'withdrawn')), toUInt64(sumIf(key, list = 'first')),
  sumIf(bucket, list = 'first'), sumIf(bucket, list = 'deposited'), sumIf(bucket, list = 'withdrawn')
FROM (
  SELECT user, list, bucket, key, sum(sign) AS places
  FROM {database}.rankings
  WHERE seq <= {seq:UInt64} AND sign != 0
  GROUP BY user, list, bucket, key
  HAVING places != 0
)
GROUP BY user
ORDER BY user
