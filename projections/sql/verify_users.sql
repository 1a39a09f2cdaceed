-- Live states of users; more than one for a user is a fault.
SELECT lower(hex(user)), sum(sign), toString(any(deposited)), toString(any(withdrawn)), any(first_ts)
FROM {database}.users
WHERE seq <= {seq:UInt64} AND sign != 0
GROUP BY user, since
HAVING sum(sign) != 0
ORDER BY user
