-- The first log of a user, in all vaults or one, which is a deposit or a withdrawal request, and says when. Of the rows at
-- a place the newest one says whether there is a live log, and one that takes back comes next after what it takes back. The
-- projection by user does not know the times of requests: that of the first one is read by its name.
SELECT seq, toInt8(1) AS sign, block, log_index, event, vault, id, toInt256(ts) AS change
FROM (
  SELECT seq, block, log_index, 'DepositAccepted' AS event, vault, deposit_id AS id, ts
  FROM (
    SELECT seq, sign, block, log_index, vault, deposit_id, ts
    FROM deposits
    WHERE user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    ORDER BY block, log_index, seq DESC
    LIMIT 1 BY block, log_index
    SETTINGS preferred_optimize_projection_name = 'by_user'
  )
  WHERE sign = 1
  LIMIT 1
  UNION ALL
  SELECT seq, block, log_index, 'WithdrawalRequested', vault, request_index, ts
  FROM withdrawal_events
  WHERE (vault, request_index, seq) IN (
    SELECT vault, request_index, seq
    FROM (
      SELECT seq, sign, vault, request_index, block, log_index
      FROM withdrawal_events
      WHERE user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
        AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
      ORDER BY block, log_index, seq DESC
      LIMIT 1 BY block, log_index
      SETTINGS preferred_optimize_projection_name = 'by_user'
    )
    WHERE sign = 1
    LIMIT 1
  )
  SETTINGS optimize_use_projections = 0
)
ORDER BY block, log_index
LIMIT 1
UNION ALL
SELECT seq, sign, block, log_index, 'DepositAccepted', vault, deposit_id, toInt256(0)
FROM (
  SELECT seq, sign, block, log_index, vault, deposit_id,
    leadInFrame(sign, 1, toInt8(1)) OVER (PARTITION BY block, log_index ORDER BY seq ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next
  FROM deposits
  WHERE {retracted:UInt32} = 1 AND user = {user:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
)
WHERE sign = -1 OR next = -1
UNION ALL
SELECT seq, sign, block, log_index, 'WithdrawalRequested', vault, request_index, toInt256(0)
FROM (
  SELECT seq, sign, block, log_index, vault, request_index,
    leadInFrame(sign, 1, toInt8(1)) OVER (PARTITION BY block, log_index ORDER BY seq ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next
  FROM withdrawal_events
  WHERE {retracted:UInt32} = 1 AND user = {user:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
)
WHERE sign = -1 OR next = -1
