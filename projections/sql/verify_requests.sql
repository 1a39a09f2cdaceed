-- Live states of requests as of a block; more than one for a request is a fault.
SELECT lower(hex(vault)), request_index, sum(sign), lower(hex(any(user))), lower(hex(any(receiver))), any(partner), toString(any(shares)), toString(any(estimate)), any(expires_ts),
  any(requested), any(requested_ts), any(requested_block), lower(hex(any(tx))), any(log_index),
  any(funded), any(funded_ts), toString(any(funded_assets)), any(claimed), any(claimed_ts), toString(any(claimed_assets)),
  any(cancelled), any(cancelled_ts), any(expired), any(expired_ts)
FROM {database}.requests
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64} AND sign != 0
GROUP BY vault, request_index, since
HAVING sum(sign) != 0
ORDER BY vault, request_index
