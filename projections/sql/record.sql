-- What a record of the log is, as decode.Fact says it.
SELECT concat(toString(kind), ' ', toString(event), ' of block ', toString(block), ' ', lower(hex(hash)), ', log ', toString(log_index),
  ', time ', toString(ts), ', takes back seq ', toString(retracts), ', boundary ', toString(boundary))
FROM records
WHERE seq = {seq:UInt64}
