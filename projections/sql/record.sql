-- Describes a record of the log as decode.Fact does.
SELECT concat(toString(record), ' ', toString(event), ' of block ', toString(block), ' ', lower(hex(hash)), ', log ', toString(log_index),
  ' of vault ', lower(hex(vault)), ', time ', toString(ts), ', retracts seq ', toString(retracts), ', boundary ', toString(boundary),
  if(record IN ('vault', 'decision'), concat(', SHA-256 ', lower(hex(SHA256(payload)))), ''))
FROM events
WHERE seq = {seq:UInt64} AND sub = 0
