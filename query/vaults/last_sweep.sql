-- The time of the last sweep of a vault, 0 for none. Sweeps are few.
SELECT max(ts) AS ts
FROM sweeps
WHERE vault = {vault:FixedString(20)} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM sweeps WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64})
