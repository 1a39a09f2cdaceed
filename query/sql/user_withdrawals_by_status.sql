-- The same of one status: it takes the states of all of them.
WITH wanted AS (
    {{template "user_wanted"}}
  )
SELECT *, {{template "status"}} AS status FROM ({{template "request_states"}})
WHERE status = {status:String}
ORDER BY requested_block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
