-- Whether there are groups or lines. Retracted effects count too, so the result for a seq never changes.
SELECT count() > 0
FROM (
  SELECT 1
  FROM events
  WHERE record = 'log' AND seq <= {seq:UInt64} AND (effect = 'deposit' AND grouped OR effect = 'requested' AND (grouped OR by != 'none')
    OR effect = 'claimed' AND by = 'owner' OR effect = 'cancelled' AND by = 'fifo')
  LIMIT 1
)
