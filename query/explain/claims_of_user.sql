-- What a user claimed, in all vaults or one, log by log.
SELECT seq, sign, block, log_index, 'WithdrawalClaimed' AS event, vault, request_index AS id, assets AS change
FROM withdrawal_events
WHERE user = {user:FixedString(20)} AND kind = 'claimed' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
SETTINGS preferred_optimize_projection_name = 'by_user'
