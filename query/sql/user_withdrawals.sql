-- A page of one user's withdrawal requests, newest first, with how many there
-- are and how many rows say so: see user_deposits.sql.
SELECT vault, request_index, sum(sign) OVER () AS total, count() OVER () AS said
{{template "user_withdrawals"}}{{if .Live}} {{template "user_live"}}{{end}}
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS preferred_optimize_projection_name = 'keys_user'
