-- A page of one user's withdrawal requests, newest first, and how many there
-- are: by the projection keys_user.
SELECT vault, request_index, count() OVER () AS total
FROM (
  SELECT vault, request_index, block, log_index, if(sign > 0, seq, retracts) AS name
  {{template "user_withdrawals"}} AND sign != 0
  GROUP BY vault, request_index, block, log_index, name HAVING sum(sign) > 0
)
ORDER BY block DESC, log_index DESC LIMIT {limit:UInt64} OFFSET {offset:UInt64}
