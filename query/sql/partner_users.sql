-- The users with a deposit attributed to a partner. Not the sum of
-- partner_user: that is kept in the log's order, which is not the chain's
-- across vaults, and a block in the past asks for the chain's.
SELECT toInt64(count()) AS total
FROM (
  SELECT user
  FROM {db:Identifier}.deposits
  WHERE partner = {partner:UInt32} AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  GROUP BY user HAVING sum(sign) > 0
)
