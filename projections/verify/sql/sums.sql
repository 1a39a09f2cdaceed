-- Rows of lists by list and part: the weighted number of rows and the weighted sum of their hashes (the sum wraps), so
-- that no row is held in memory. The rows of the cursor have its seq.
SELECT toString(list) AS name, toString(part) AS text, toInt64(sum(weight)) AS times,
  sum(weight * reinterpretAsInt64(print)) AS hash, max(seq) AS last
FROM (
  SELECT list, seq, cityHash64({columns}) AS print, {part} AS part, toInt64({weight}) AS weight
  FROM {from}
  WHERE list != 'touched' AND {where}
)
GROUP BY list, part
HAVING times != 0 OR hash != 0
