-- Rows of lists by list and slice: the weighted number of rows and the weighted sum of their hashes (the sum wraps),
-- so that no row is held in memory. The rows of the cursor have its seq.
SELECT toString(list) AS name, print % {pieces:UInt64} AS slice, toInt64(sum(weight)) AS times,
  sum(weight * reinterpretAsInt64(print)) AS hash, max(seq) AS last
FROM (SELECT list, seq, cityHash64({columns}) AS print, toInt64({weight}) AS weight FROM {from})
WHERE list != 'touched'
GROUP BY list, slice
