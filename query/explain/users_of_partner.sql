-- The first deposit of each user through a partner, as they lie in the projection: of the rows at a place the newest one
-- says whether there is a live log, and one that takes back comes next after what it takes back.
SELECT seq, sign, block, log_index, 'DepositAccepted' AS event, vault, deposit_id AS id, toInt256(1) AS change
FROM (
  SELECT user, block, log_index, seq, vault, deposit_id, sign
  FROM deposits
  WHERE partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  ORDER BY block, log_index, seq DESC
  LIMIT 1 BY block, log_index
  SETTINGS preferred_optimize_projection_name = 'by_partner'
)
WHERE sign = 1
LIMIT 1 BY user
UNION ALL
SELECT seq, sign, block, log_index, 'DepositAccepted', vault, deposit_id, toInt256(0)
FROM (
  SELECT seq, sign, block, log_index, vault, deposit_id,
    leadInFrame(sign, 1, toInt8(1)) OVER (PARTITION BY block, log_index ORDER BY seq ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next
  FROM deposits
  WHERE {retracted:UInt32} = 1 AND partner = {partner:UInt32} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
)
WHERE sign = -1 OR next = -1
SETTINGS preferred_optimize_projection_name = 'by_partner'
