WITH wanted AS (
    {{template "user_wanted"}}
  )
SELECT toInt64(count()) AS total FROM (SELECT {{template "status"}} AS status FROM ({{template "request_states"}}))
WHERE status = {status:String}
