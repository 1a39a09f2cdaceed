-- Live NAV updates.
SELECT seq, lower(hex(vault)), toString(nav_per_share), toString(total_assets), toString(total_supply), block, ts, lower(hex(tx)), log_index
FROM {database}.navs
WHERE seq <= {seq:UInt64} AND sign = 1
  AND seq NOT IN (SELECT retracts FROM {database}.navs WHERE seq <= {seq:UInt64} AND sign = -1)
ORDER BY seq
