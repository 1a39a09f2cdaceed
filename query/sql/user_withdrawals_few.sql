-- All rows that name one user's withdrawal requests, where these are few.
SELECT vault, request_index, block, log_index, seq, sign, retracts
{{template "user_withdrawals"}}
LIMIT {few:UInt64}
SETTINGS preferred_optimize_projection_name = 'keys_user'
