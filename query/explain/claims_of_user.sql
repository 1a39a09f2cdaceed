-- Payments to a user in all vaults or one: claims, and withdrawals without a request.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, assets AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect IN ('claimed', 'instant') AND user = {user:FixedString(20)} AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
