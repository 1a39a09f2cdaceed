-- A sweep in words.
SELECT seq, concatWithSeparator(' ', toString(seq), toString(sign), toString(retracts), lower(hex(vault)), toString(from_id), toString(to_id), toString(assets),
  toString(block), toString(ts), lower(hex(tx)), toString(log_index)) AS line
FROM sweeps
