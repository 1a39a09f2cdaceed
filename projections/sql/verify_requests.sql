-- What the live logs say about each request as of a block, the first of a kind
-- where there are several.
SELECT lower(hex(vault)), request_index,
  lower(hex(argMinIf(user, seq, kind = 'requested'))), lower(hex(argMinIf(receiver, seq, kind = 'requested'))),
  argMinIf(partner, seq, kind = 'requested'), toString(argMinIf(shares, seq, kind = 'requested')),
  toString(argMinIf(estimate, seq, kind = 'requested')), argMinIf(expires_ts, seq, kind = 'requested'),
  countIf(kind = 'requested'), argMinIf(ts, seq, kind = 'requested'), argMinIf(block, seq, kind = 'requested'),
  lower(hex(argMinIf(tx, seq, kind = 'requested'))), argMinIf(log_index, seq, kind = 'requested'),
  countIf(kind = 'funded'), argMinIf(ts, seq, kind = 'funded'), toString(argMinIf(assets, seq, kind = 'funded')),
  countIf(kind = 'claimed'), argMinIf(ts, seq, kind = 'claimed'), toString(sumIf(assets, kind = 'claimed')),
  countIf(kind = 'cancelled'), argMinIf(ts, seq, kind = 'cancelled'), countIf(kind = 'expired'), argMinIf(ts, seq, kind = 'expired')
FROM {database}.requests
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64} AND sign = 1
  AND seq NOT IN (SELECT retracts FROM {database}.requests WHERE seq <= {seq:UInt64} AND sign = -1)
GROUP BY vault, request_index
ORDER BY vault, request_index
SETTINGS optimize_aggregation_in_order = 1
