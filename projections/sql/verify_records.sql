-- Live records that are quarantined.
SELECT seq FROM {database}.records
WHERE seq <= {seq:UInt64} AND sign = 1 AND quarantined
  AND seq NOT IN (SELECT retracts FROM {database}.records WHERE seq <= {seq:UInt64} AND sign = -1)
ORDER BY seq
