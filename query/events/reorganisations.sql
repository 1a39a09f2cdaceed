-- Reorganisations by the block with which each begins, newest first; those that begin in one bucket of blocks are a row.
-- The records that one retracts follow each other in the log, with nothing between, and what comes next appends: so
-- their seq less their rank is the same number for all of them, and another one for those of the next.
SELECT min(first) AS from, max(last) AS to, count() AS count, sum(logs) AS logs, max(seq) AS seq, sum(count()) OVER () AS total
FROM (
  SELECT min(block) AS first, max(block) AS last, max(seq) AS seq, countIf(told) AS logs
  FROM (
    SELECT seq, block, record = 'log' AND NOT passed AND (effect != 'none' OR quarantined) AS told, seq - row_number() OVER (ORDER BY seq) AS island
    FROM events
    WHERE sign = -1 AND sub = 0 AND seq <= {seq:UInt64}
  )
  GROUP BY island
)
WHERE first <= {block:UInt64} AND intDiv(first, {width:UInt64}) < {before:UInt64}
GROUP BY intDiv(first, {width:UInt64})
ORDER BY from DESC
LIMIT {most:UInt64}
