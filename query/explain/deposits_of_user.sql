-- The deposits of a user, in all vaults or one, without those that became void; each counts as 1 or as its assets.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, if({measure:String} = 'count', toInt256(1), assets) AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'deposit' AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND (seq, sub) NOT IN ({void}) -- if voids
