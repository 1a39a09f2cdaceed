-- What a record of the log says, in words.
SELECT concat(toString(kind), ' ', toString(event), ' of block ', toString(block), ', log ', toString(log_index), if(sign < 0, concat(', takes back seq ', toString(retracts)), ''))
FROM records
WHERE seq = {seq:UInt64}
