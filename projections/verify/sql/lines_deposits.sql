-- A deposit in words.
SELECT seq, concatWithSeparator(' ', toString(seq), toString(sign), toString(retracts), lower(hex(vault)), toString(deposit_id),
  lower(hex(user)), lower(hex(sender)), toString(partner), toString(assets), toString(shares),
  toString(block), toString(ts), lower(hex(tx)), toString(log_index)) AS line
FROM deposits
