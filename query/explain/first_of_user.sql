-- The first deposit, withdrawal request or withdrawal without a request of a user, in all vaults or one; the change
-- is its time. Only retractions about the user are read, because the table has an index of users.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(ts) AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect IN ('deposit', 'requested', 'instant') AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND sign = 1 AND seq NOT IN ({gone} AND user = {user:FixedString(20)})
ORDER BY block, log_index, sub
LIMIT 1
UNION ALL
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, toInt256(0)
FROM events
WHERE {retracted:Bool} AND record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect IN ('deposit', 'requested', 'instant') AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND (sign = -1 OR seq IN ({gone} AND user = {user:FixedString(20)}))
