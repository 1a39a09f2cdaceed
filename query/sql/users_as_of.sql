-- A page of the users as of a block: the states in users are those of the log's
-- order, which is not the chain's across vaults, so they are summed anew.
SELECT user, sum(in_deposits) AS deposited, sum(out_claims) AS withdrawn, toUInt32(minIf(seen, in_vault > 0)) AS first_ts
FROM (
  SELECT user, vault, sum(vault_user) AS in_vault, sum(f.deposited) AS in_deposits, sum(f.withdrawn) AS out_claims, sum(f.first_ts) AS seen
  FROM {db:Identifier}.flows AS f
  WHERE sign != 0 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  GROUP BY user, vault
)
GROUP BY user HAVING sum(in_vault) > 0
ORDER BY {{template "user_order" .}} LIMIT {limit:UInt64} OFFSET {offset:UInt64}
