-- What a record of the log says, in words.
SELECT concat(kind, ' ', event, ' of block ', toString(block), ', log ', toString(log_index), ', transaction 0x', lower(hex(tx)), if(sign < 0, concat(', takes back seq ', toString(retracts)), ''))
FROM {database}.records
WHERE seq = {seq:UInt64}
