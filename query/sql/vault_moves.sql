-- What some logs did to vaults, each with its requests by 256 (vaultMove).
SELECT vault, intDiv(request_index, 256) AS bucket, sum(open * {{template "queue_bit"}}) AS queued, sum(waiting) AS unfunded, sum(waiting * estimate) AS amount,
  sum(vault_user) AS users,
  groupArrayIf(request_index, open > 0 AND event = 'WithdrawalRequested') AS made, groupArrayIf(block, open > 0 AND event = 'WithdrawalRequested') AS blocks,
  groupArrayIf(request_index, {{template "waits"}}) AS indexes, groupArrayIf(waiting, {{template "waits"}}) AS signs,
  groupArrayIf(estimate, {{template "waits"}}) AS amounts, groupArrayIf(expires_ts, {{template "waits"}}) AS ends
FROM {db:Identifier}.records
WHERE kind = 'log' AND (open != 0 OR waiting != 0 OR vault_user != 0)
  AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq > {since:UInt64} AND seq <= {seq:UInt64}
GROUP BY vault, bucket
{{template "whole_rows"}}
