-- The place of each user in each list, its bucket, and what it shows: a user
-- stands in all three, once, and all three show the same.
SELECT lower(hex(user)), countIf(places = 1), max(places),
  toString(min(deposits)), toString(max(deposits)), toString(min(withdrawals)), toString(max(withdrawals)), toString(min(since)), toString(max(since)),
  sumIf(bucket, list = 'first'), sumIf(bucket, list = 'deposited'), sumIf(bucket, list = 'withdrawn')
FROM (
  SELECT user, list, bucket, key, sum(users) AS places, if(list = 'first', key, toInt256(sum(r.first))) AS since,
    if(list = 'deposited', key, sum(r.deposited)) AS deposits, if(list = 'withdrawn', key, sum(r.withdrawn)) AS withdrawals
  FROM {database}.rankings AS r
  WHERE seq <= {seq:UInt64} AND sign != 0
  GROUP BY user, list, bucket, key
  HAVING places != 0 OR sum(r.first) != 0 OR sum(r.deposited) != 0 OR sum(r.withdrawn) != 0
)
GROUP BY user
ORDER BY user
SETTINGS optimize_aggregation_in_order = 1
