-- A page of one user's withdrawal requests, newest first.
SELECT {{template "request_state"}}, {{template "status"}} AS status
FROM {db:Identifier}.requests
WHERE user = toFixedString(unhex({user:String}), 20) AND ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
  AND requested > 0 AND ({status:String} = '' OR status = {status:String})
  AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY {{template "request_state"}} HAVING sum(sign) > 0
ORDER BY requested_block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
