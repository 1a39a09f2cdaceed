-- A page of one user's deposits, newest first, with how many there are and how
-- many rows say so. Where these differ some were taken back, and the same is
-- asked again without them.
SELECT {{template "deposit"}}, sum(sign) OVER () AS total, count() OVER () AS said
{{template "user_deposits"}} AND {{if .Live}}sign = 1 AND seq NOT IN (
    SELECT retracts FROM {db:Identifier}.deposits WHERE user = {user:FixedString(20)} AND sign = -1 AND seq <= {lastLog:UInt64})
  {{- else}}sign != 0{{end}}
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
{{template "by_user"}}
