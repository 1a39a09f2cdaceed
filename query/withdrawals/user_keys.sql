-- The newest logs that asked for a withdrawal of a user: of the rows at a place the newest one says whether there is a
-- live log. It is read in the order of the projection and stops at the end of what is wanted.
SELECT vault, request_index
FROM (
  SELECT vault, request_index, block, log_index, sign
  FROM withdrawal_events
  WHERE user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  ORDER BY user DESC, block DESC, log_index DESC, seq DESC
  LIMIT 1 BY block, log_index
)
WHERE sign = 1
LIMIT {limit:UInt64}
SETTINGS preferred_optimize_projection_name = 'by_user'
