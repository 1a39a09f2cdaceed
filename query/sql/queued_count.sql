SELECT sum(sign) AS total
FROM {db:Identifier}.requests
WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
  AND requested > 0 AND {{template "status"}} = 'queued'
  AND seq <= {seq:UInt64} AND block <= {block:UInt64}
