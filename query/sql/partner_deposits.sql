-- A page of the deposits attributed to one partner, newest first: which ones, by
-- the projection keys_partner, and then the rows.
SELECT {{template "deposit"}}
FROM {db:Identifier}.deposits
WHERE (vault, deposit_id, seq) IN (
    SELECT vault, deposit_id, seq
    FROM {db:Identifier}.deposits
    WHERE partner = {partner:UInt32} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND seq NOT IN (SELECT retracts FROM {db:Identifier}.deposits WHERE partner = {partner:UInt32} AND sign = -1 AND seq <= {seq:UInt64})
    ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
ORDER BY block DESC, log_index DESC
