-- The seq, the newest block, and the number of units up to the seq that retracted something. A skipped block can be the
-- newest one after a retraction; its time is that of the newest listed block, as in every answer about it.
SELECT newest.1 AS block, newest.2 AS ts, {seq:UInt64} AS seq, rewrites
FROM (SELECT (max(block), argMaxIf(ts, block, listed)) AS newest FROM mined) AS newest_block, (
  SELECT uniqExact(units.seq) AS rewrites
  FROM (SELECT 0 AS one, seq FROM events WHERE sign = -1 AND seq <= {seq:UInt64}) AS retractions
  ASOF JOIN (SELECT 0 AS one, seq FROM events WHERE boundary AND seq <= {seq:UInt64}) AS units
    ON retractions.one = units.one AND retractions.seq <= units.seq
) AS counted
