-- The place of each user in each list; a user stands in all three, once.
SELECT lower(hex(user)), countIf(places = 1), max(places),
  toString(sumIf(key, list = 'deposited')), toString(sumIf(key, list = 'withdrawn')), toUInt64(sumIf(key, list = 'first'))
FROM (
  SELECT user, list, key, sum(sign) AS places
  FROM {database}.rankings
  WHERE seq <= {seq:UInt64} AND sign != 0
  GROUP BY user, list, key
  HAVING places != 0
)
GROUP BY user
ORDER BY user
