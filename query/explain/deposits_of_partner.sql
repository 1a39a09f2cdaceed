-- The deposits through a partner, in all vaults or one: each counts as one, or as what was put in.
SELECT seq, sign, block, log_index, 'DepositAccepted' AS event, vault, deposit_id AS id,
  if({measure:String} = 'count', toInt256(1), assets) AS change
FROM deposits
WHERE partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
SETTINGS preferred_optimize_projection_name = 'by_partner'
