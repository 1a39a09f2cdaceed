-- Consecutive records of the log: the effects of logs that the stream sends, with their retractions, and the ends of
-- units.
SELECT seq, sub, retracts, boundary, record = 'block' AND sign = 1 AS indexed, told, event AS name, effect, quarantined, vault, user, tx, block, ts, log_index,
  partner, id, id_to, toString(assets) AS amount, toString(shares) AS share_amount, grouped, toString(nav) AS nav_per_share
FROM (
  SELECT *, record = 'log' AND NOT passed AND (effect != 'none' OR quarantined) AS told
  FROM events
  WHERE seq > {after:UInt64} AND seq <= {to:UInt64}
)
WHERE told OR boundary
ORDER BY seq, sub
