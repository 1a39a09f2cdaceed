-- What some logs did to vaults, each with its requests by 256 (moveRow).
SELECT vault, intDiv(request_index, 256) AS bucket, sum(open * {{template "queue_bit"}}) AS queued, sum(waiting) AS unfunded, sum(waiting * estimate) AS amount,
  sum(vault_user) AS users,
  toString(groupArrayIf((request_index, block), open > 0 AND event = 'WithdrawalRequested')) AS made,
  toString(groupArrayIf((request_index, expires_ts, estimate, waiting), {{template "waits"}})) AS waits
FROM {db:Identifier}.records
WHERE kind = 'log' AND (open != 0 OR waiting != 0 OR vault_user != 0)
  AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq > {since:UInt64} AND seq <= {seq:UInt64}
GROUP BY vault, bucket
{{template "whole_rows"}}
