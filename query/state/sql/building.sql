-- The newest record of a generation that is being built, whose lists are not there yet, and the newest and the first live block.
SELECT (SELECT max(seq) FROM events) AS last_seq, max(block) AS newest_block, argMax(ts, block) AS newest_ts, min(block) AS first_block
FROM events
WHERE record = 'block' AND sign = 1 AND seq NOT IN (SELECT retracts FROM events WHERE record = 'block' AND sign = -1)
