-- What the page shows of its users beside the key of its order. Each column of
-- so many users costs as much as finding them.
SELECT user
  {{- if ne .List "first"}}, vault, sum(vault_user) AS live, sum(f.first_ts) AS first_ts{{end}}
  {{- if ne .List "deposited"}}, sum(f.deposited) AS deposited{{end}}
  {{- if ne .List "withdrawn"}}, sum(f.withdrawn) AS withdrawn{{end}}
FROM {db:Identifier}.flows AS f
PREWHERE user IN ({{.Users}})
WHERE seq <= {seq:UInt64}
GROUP BY user{{if ne .List "first"}}, vault{{end}}
{{template "by_row"}}
