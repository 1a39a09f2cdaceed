-- A page of the users as of a block, summed anew, and how many users there are.
SELECT user, deposited, withdrawn, first_ts, count() OVER () AS total
FROM (
  SELECT user, sum(in_deposits) AS deposited, sum(out_claims) AS withdrawn, toUInt32(minIf(seen, in_vault > 0)) AS first_ts
  FROM (
    SELECT user, vault, sum(vault_user) AS in_vault, sum(f.deposited) AS in_deposits, sum(f.withdrawn) AS out_claims, sum(f.first_ts) AS seen
    FROM {db:Identifier}.flows AS f
    WHERE seq <= {lastLog:UInt64} AND block <= {block:UInt64}
    GROUP BY user, vault
  )
  GROUP BY user HAVING sum(in_vault) > 0
)
ORDER BY {{.Key}} {{if .Descending}}DESC{{else}}ASC{{end}}, user ASC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS max_threads = 2
