-- A page of one user's deposits, newest first, and how many there are. name is
-- the seq of the row that says what was deposited.
SELECT vault, deposit_id, if(sign > 0, seq, retracts) AS name, count() OVER () AS total
FROM {db:Identifier}.deposits
WHERE user = toFixedString(unhex({user:String}), 20) AND ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
  AND sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND ts >= {from:Int64} AND ts <= {to:Int64}
GROUP BY vault, deposit_id, block, log_index, name HAVING sum(sign) > 0
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
{{template "by_user"}}
