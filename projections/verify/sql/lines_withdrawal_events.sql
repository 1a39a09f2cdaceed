-- A log about a withdrawal request in words.
SELECT seq, concatWithSeparator(' ', toString(seq), toString(sign), toString(retracts), lower(hex(vault)), toString(request_index), toString(kind),
  lower(hex(user)), lower(hex(receiver)), toString(partner), toString(shares), toString(assets), toString(expires_ts),
  toString(block), toString(ts), lower(hex(tx)), toString(log_index)) AS line
FROM withdrawal_events
