-- Live logs that no total includes.
SELECT toString(seq)
FROM events
WHERE seq <= {seq:UInt64} AND sign = 1 AND quarantined
  AND seq NOT IN (SELECT retracts FROM events WHERE seq <= {seq:UInt64} AND sign = -1)
ORDER BY seq
