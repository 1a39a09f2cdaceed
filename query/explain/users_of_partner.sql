-- Each user's first deposit that names a partner.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(1) AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'deposit' AND partner = {partner:UInt32} AND sign = 1 AND seq NOT IN ({gone})
ORDER BY block, log_index, sub
LIMIT 1 BY user
UNION ALL
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(0)
FROM events
WHERE {retracted:Bool} AND record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'deposit' AND partner = {partner:UInt32} AND (sign = -1 OR seq IN ({gone}))
