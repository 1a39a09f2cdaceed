-- A page of one user's deposits, newest first: which ones, by the projection
-- keys_user, and then the rows.
SELECT {{template "deposit"}}
FROM {db:Identifier}.deposits
WHERE (vault, deposit_id, seq) IN (
    SELECT vault, deposit_id, seq
    FROM {db:Identifier}.deposits
    WHERE user = toFixedString(unhex({user:String}), 20) AND ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20))
      AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64} AND ts >= {from:Int64} AND ts <= {to:Int64}
      AND seq NOT IN (SELECT retracts FROM {db:Identifier}.deposits
        WHERE user = toFixedString(unhex({user:String}), 20) AND sign = -1 AND seq <= {seq:UInt64})
    ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
ORDER BY block DESC, log_index DESC
