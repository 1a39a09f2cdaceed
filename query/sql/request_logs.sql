-- What the log says of some requests, taken back or not.
SELECT seq, sign, retracts, vault, request_index, kind, user, receiver, partner, shares, assets, estimate, expires_ts, block, ts, tx, log_index
FROM {db:Identifier}.requests
PREWHERE (vault, request_index) IN ({{.}})
WHERE seq <= {lastLog:UInt64} AND block <= {block:UInt64}
{{template "by_row"}}
