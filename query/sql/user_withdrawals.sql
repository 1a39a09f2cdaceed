-- A page of one user's withdrawal requests, newest first.
WITH wanted AS (
    SELECT vault, request_index
    FROM {db:Identifier}.requests
    WHERE user = toFixedString(unhex({user:String}), 20)
  )
SELECT *, {{template "status"}} AS status FROM ({{template "request_states"}})
WHERE {{template "user_withdrawals"}}
ORDER BY requested_block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
