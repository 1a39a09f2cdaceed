-- The first deposit, withdrawal request or withdrawal without a request of each user of a vault.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(1) AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect IN ('deposit', 'requested', 'instant') AND vault = {vault:FixedString(20)} AND sign = 1 AND seq NOT IN ({gone})
ORDER BY block, log_index, sub
LIMIT 1 BY user
UNION ALL
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(0)
FROM events
WHERE {retracted:Bool} AND record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect IN ('deposit', 'requested', 'instant') AND vault = {vault:FixedString(20)} AND (sign = -1 OR seq IN ({gone}))
