-- The name of each user's live row, as of a seq.
SELECT user, since
FROM {database}.users
WHERE user IN (SELECT user FROM wanted) AND seq <= {seq:UInt64} AND sign != 0
GROUP BY user, since
HAVING sum(sign) > 0
