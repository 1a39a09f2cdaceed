-- The newest record of a generation that is being built and does not have lists yet, and the newest and the first
-- block that are live at that record. Records inserted meanwhile are ignored.
WITH (SELECT max(seq) FROM events) AS up_to
SELECT up_to AS last_seq, max(block) AS newest_block, argMax(ts, block) AS newest_ts, min(block) AS first_block
FROM events
WHERE record = 'block' AND sign = 1 AND seq <= up_to
  AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign = -1 AND seq <= up_to)
