-- What each log of some blocks did to each vault (spanMovesRow).
SELECT vault, toString(groupArrayIf((block, vault_user), vault_user != 0)) AS users,
  toString(groupArrayIf((block, request_index, open, waiting, open > 0 AND event = 'WithdrawalRequested', expires_ts, estimate), open != 0 OR waiting != 0)) AS logs
FROM {db:Identifier}.records
WHERE kind = 'log' AND (open != 0 OR waiting != 0 OR vault_user != 0)
  AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq <= {seq:UInt64}
GROUP BY vault
{{template "whole_rows"}}
