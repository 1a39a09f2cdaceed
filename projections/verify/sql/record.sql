-- A record of the log as text.
SELECT concat(toString(record), ' ', toString(event), ' of block ', toString(block), ', log ', toString(log_index),
  if(sign < 0, concat(', retracts seq ', toString(retracts)), ''))
FROM events
WHERE seq = {seq:UInt64}
LIMIT 1
