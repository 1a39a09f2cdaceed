WITH wanted AS (
    SELECT vault, request_index
    FROM {db:Identifier}.requests
    WHERE user = toFixedString(unhex({user:String}), 20)
  )
SELECT toInt64(count()) AS total FROM (SELECT *, {{template "status"}} AS status FROM ({{template "request_states"}}))
WHERE {{template "user_withdrawals"}}
