-- The same out of the rows themselves.
SELECT vault, sum(vault_user) AS users, max(seq) AS last FROM {db:Identifier}.flows
WHERE seq <= {lastLog:UInt64} AND vault = {vault:FixedString(20)} AND block <= {block:UInt64}
GROUP BY vault
{{template "by_row"}}
