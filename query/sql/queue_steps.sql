-- What some logs did to each request that they brought into the queue or out of
-- it: as sums, so that it does not matter in which order they did. made is the
-- block in which it was made, 0 for none of these.
SELECT vault, request_index, sum(r.open) AS open, sum(r.waiting) AS waiting, sum(r.waiting * r.estimate) AS amount,
  sum(r.waiting * toInt64(r.expires_ts)) AS expires, minIf(block, event = 'WithdrawalRequested') AS made
FROM {db:Identifier}.records AS r
WHERE kind = 'log' AND (r.open != 0 OR r.waiting != 0)
  AND block >= {from:UInt64} AND block <= {to:UInt64} AND seq > {since:UInt64} AND seq <= {seq:UInt64}
GROUP BY vault, request_index
HAVING open != 0 OR waiting != 0 OR amount != 0 OR expires != 0
{{template "by_row"}}
