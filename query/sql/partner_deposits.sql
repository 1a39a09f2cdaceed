-- A page of the deposits attributed to one partner, newest first, by the
-- projection by_partner. Of one deposit the row that takes it back is read
-- first, so that what the scan cuts off leaves none that is not there; both say
-- the same of it.
SELECT any(d.vault) AS vault, any(d.deposit_id) AS deposit_id, any(d.user) AS user, any(d.sender) AS sender, any(d.partner) AS partner,
  any(d.assets) AS assets, any(d.shares) AS shares, block, any(d.ts) AS ts, any(d.tx) AS tx, log_index
FROM (
  SELECT {{template "deposit"}}, sign, if(sign > 0, seq, retracts) AS name
  FROM {db:Identifier}.deposits
  WHERE partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY partner DESC, block DESC, log_index DESC, seq DESC LIMIT {scan:UInt64}
) AS d
GROUP BY block, log_index, name HAVING sum(sign) > 0
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS preferred_optimize_projection_name = 'by_partner'
