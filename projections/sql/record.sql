-- Describes a record of the log as decode.Fact does.
SELECT concat(toString(record), ' ', toString(event), ' of block ', toString(block), ' ', lower(hex(hash)), ', log ', toString(log_index),
  ', time ', toString(ts), ', retracts seq ', toString(retracts), ', boundary ', toString(boundary))
FROM events
WHERE seq = {seq:UInt64} AND sub = 0
