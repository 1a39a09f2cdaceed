SELECT toInt64(uniqExact(user)) AS total
FROM (
  SELECT user, vault
  FROM {db:Identifier}.flows
  WHERE sign != 0 AND seq <= {lastLog:UInt64} AND block <= {block:UInt64}
  GROUP BY user, vault HAVING sum(vault_user) > 0
)
SETTINGS max_threads = 2
