-- Reorganisations by their first block, newest first; those that begin in one block bucket form one row. The
-- retractions of one reorganisation are consecutive in the log, and the record after them is an append, so the
-- difference between seq and rank is the same for all of them, and another one for the next reorganisation.
SELECT min(first) AS from, max(last) AS to, count() AS count, sum(logs) AS logs, max(seq) AS seq, sum(count()) OVER () AS total
FROM (
  SELECT min(block) AS first, max(block) AS last, max(seq) AS seq, countIf(sent) AS logs
  FROM (
    SELECT seq, block, record = 'log' AND NOT passed AND (effect != 'none' OR quarantined) AS sent, seq - row_number() OVER (ORDER BY seq) AS island
    FROM events
    WHERE sign = -1 AND sub = 0 AND seq <= {seq:UInt64}
  )
  GROUP BY island
)
WHERE first <= {block:UInt64} AND intDiv(first, {width:UInt64}) < {before:UInt64}
GROUP BY intDiv(first, {width:UInt64})
ORDER BY from DESC
LIMIT {most:UInt64}
