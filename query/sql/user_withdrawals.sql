-- A page of one user's withdrawal requests, newest first, and how many there
-- are.
SELECT vault, request_index, if(sign > 0, seq, retracts) AS name, count() OVER () AS total
{{template "user_withdrawals"}} AND sign != 0
GROUP BY vault, request_index, block, log_index, name HAVING sum(sign) > 0
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
SETTINGS preferred_optimize_projection_name = 'keys_user'
