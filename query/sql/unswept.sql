-- A vault's deposits after the last one that was swept, oldest first.
SELECT {{template "deposit"}}
FROM {db:Identifier}.deposits
WHERE vault = toFixedString(unhex({vault:String}), 20) AND deposit_id > {swept:UInt64}
  AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND seq NOT IN (SELECT retracts FROM {db:Identifier}.deposits
    WHERE vault = toFixedString(unhex({vault:String}), 20) AND deposit_id > {swept:UInt64} AND sign = -1 AND seq <= {seq:UInt64})
ORDER BY block, log_index LIMIT {limit:UInt64}
