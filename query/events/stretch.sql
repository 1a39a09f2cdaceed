-- Consecutive records of the log: the effects of logs that the stream sends, with their retractions, and the ends of
-- units.
SELECT {columns}
FROM (
  SELECT *, record = 'log' AND NOT passed AND (effect != 'none' OR quarantined) AS sent
  FROM events
  WHERE seq > {after:UInt64} AND seq <= {to:UInt64}
)
WHERE sent OR boundary
ORDER BY seq, sub
