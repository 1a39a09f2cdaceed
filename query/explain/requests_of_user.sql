-- The withdrawal requests of a user, in all vaults or one: each counts as one, or as what was asked for.
SELECT seq, sign, block, log_index, 'WithdrawalRequested' AS event, vault, request_index AS id,
  if({measure:String} = 'count', toInt256(1), assets) AS change
FROM withdrawal_events
WHERE user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
SETTINGS preferred_optimize_projection_name = 'by_user'
