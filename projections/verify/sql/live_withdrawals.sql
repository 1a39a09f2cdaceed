-- The live rows of withdrawals, the cursor row first, and how often each is there; of a sample of the requests.
SELECT is_cursor, max(seq), concatWithSeparator(' ', lower(hex(vault)), toString(request_index), toString(estimate), toString(expires_ts),
  toString(requested_block), toString(requested_log), toString(funded_block), toString(closed_block), toString(sum(sign)))
FROM withdrawals
WHERE is_cursor OR request_index % {n:UInt64} = {k:UInt64}
GROUP BY vault, request_index, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block,
  closed_block = {never:UInt64} AND vault = toFixedString('', 20) AS is_cursor
HAVING sum(sign) != 0
ORDER BY is_cursor DESC, vault, request_index, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block
SETTINGS optimize_aggregation_in_order = 1
