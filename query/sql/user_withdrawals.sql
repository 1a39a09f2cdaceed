-- A page of one user's withdrawal requests, newest first: which ones, by the
-- projection keys_user, and then their states.
WITH wanted AS (
    {{template "user_wanted"}}
    ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
  )
SELECT *, {{template "status"}} AS status FROM ({{template "request_states"}})
ORDER BY requested_block DESC, log_index DESC
