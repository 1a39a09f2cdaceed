SELECT sum(sign) AS total, sum(sign * assets) AS amount
FROM {db:Identifier}.deposits
WHERE vault = toFixedString(unhex({vault:String}), 20) AND deposit_id > {swept:UInt64} AND sign != 0
  AND seq <= {seq:UInt64} AND block <= {block:UInt64}
