-- The statistics of one vault; 0 for a time that never was.
SELECT
  (SELECT max(ts) FROM {db:Identifier}.sweeps
    WHERE vault = toFixedString(unhex({vault:String}), 20) AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND seq NOT IN (SELECT retracts FROM {db:Identifier}.sweeps WHERE sign = -1 AND seq <= {seq:UInt64})) AS swept,
  (SELECT max(ts) FROM {db:Identifier}.navs
    WHERE vault = toFixedString(unhex({vault:String}), 20) AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND seq NOT IN (SELECT retracts FROM {db:Identifier}.navs
        WHERE vault = toFixedString(unhex({vault:String}), 20) AND sign = -1 AND seq <= {seq:UInt64})) AS valued
