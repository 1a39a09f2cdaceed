SELECT sum(sign) AS total
FROM {db:Identifier}.requests
WHERE user = toFixedString(unhex({user:String}), 20) AND ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
  AND requested > 0 AND ({status:String} = '' OR {{template "status"}} = {status:String})
  AND seq <= {seq:UInt64} AND block <= {block:UInt64}
