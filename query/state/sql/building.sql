-- The newest record of a generation that is being built, whose lists are not there yet, and the newest and the first block
-- that is live then. Records that are inserted meanwhile do not count.
WITH (SELECT max(seq) FROM events) AS up_to
SELECT up_to AS last_seq, max(block) AS newest_block, argMax(ts, block) AS newest_ts, min(block) AS first_block
FROM events
WHERE record = 'block' AND sign = 1 AND seq <= up_to
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign = -1 AND seq <= up_to)
