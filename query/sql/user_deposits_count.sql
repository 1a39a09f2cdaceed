SELECT sum(sign) AS total
FROM {db:Identifier}.deposits
WHERE user = toFixedString(unhex({user:String}), 20) AND ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
  AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND ts >= {from:Int64} AND ts <= {to:Int64}
