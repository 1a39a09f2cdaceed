-- The live rows of withdrawals, the cursor row first, and how often each is there; of a sample of the requests.
SELECT is_cursor, max(seq), concatWithSeparator(' ', toString(list), lower(hex(user)), toString(key), toString(requested_log),
  lower(hex(vault)), toString(request_index), lower(hex(owner)), toString(estimate), toString(expires_ts), toString(requested_block),
  toString(funded_block), toString(closed_block), toString(closed_by), toString(sum(sign)))
FROM withdrawals
WHERE is_cursor OR request_index % {n:UInt64} = {k:UInt64}
GROUP BY list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by, list = 'cursor' AS is_cursor
HAVING sum(sign) != 0
ORDER BY list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by
SETTINGS optimize_aggregation_in_order = 1
