-- How many users came into buckets of a list after a seq, or left them.
SELECT bucket, sum(r.users) AS users
FROM {db:Identifier}.rankings AS r
WHERE list = '{{.List}}' AND abs(r.users) = 1 AND seq > {since:UInt64} AND seq <= {seq:UInt64}
GROUP BY bucket HAVING users != 0
ORDER BY bucket
