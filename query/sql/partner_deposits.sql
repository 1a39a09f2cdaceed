-- A page of the deposits attributed to one partner, newest first, by the
-- projection keys_partner. Of one deposit the row that takes it back is read
-- first, so that what the scan cuts off leaves none that is not there.
SELECT vault, deposit_id, name
FROM (
  SELECT vault, deposit_id, block, log_index, sign, if(sign > 0, seq, retracts) AS name
  FROM {db:Identifier}.deposits
  WHERE partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY partner DESC, block DESC, log_index DESC, seq DESC LIMIT {scan:UInt64}
)
GROUP BY vault, deposit_id, block, log_index, name HAVING sum(sign) > 0
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS preferred_optimize_projection_name = 'keys_partner'
