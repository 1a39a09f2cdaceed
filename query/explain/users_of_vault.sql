-- The first log of each user of a vault, which is a deposit or a withdrawal request. The live logs of a vault are in the log
-- in the order of the chain.
SELECT first AS seq, toInt8(1) AS sign, first_block AS block, first_log AS log_index,
  if(deposited, 'DepositAccepted', 'WithdrawalRequested') AS event, toFixedString({vault:FixedString(20)}, 20) AS vault, first_id AS id, toInt256(1) AS change
FROM (
  SELECT min(seq) AS first, argMin(block, seq) AS first_block, argMin(log_index, seq) AS first_log, argMin(deposit, seq) AS deposited, argMin(id, seq) AS first_id
  FROM (
    SELECT user, block, log_index, seq, toUInt8(1) AS deposit, deposit_id AS id
    FROM deposits
    WHERE vault = {vault:FixedString(20)} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND seq NOT IN (SELECT retracts FROM deposits WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64})
    UNION ALL
    SELECT user, block, log_index, seq, toUInt8(0), request_index
    FROM withdrawal_events
    WHERE vault = {vault:FixedString(20)} AND kind = 'requested' AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND seq NOT IN (SELECT retracts FROM withdrawal_events WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64})
  )
  GROUP BY user
)
UNION ALL
SELECT seq, sign, block, log_index, 'DepositAccepted', vault, deposit_id, toInt256(0)
FROM deposits
WHERE {retracted:UInt32} = 1 AND vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND (sign = -1 OR seq IN (SELECT retracts FROM deposits WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64}))
UNION ALL
SELECT seq, sign, block, log_index, 'WithdrawalRequested', vault, request_index, toInt256(0)
FROM withdrawal_events
WHERE {retracted:UInt32} = 1 AND vault = {vault:FixedString(20)} AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND (sign = -1 OR seq IN (SELECT retracts FROM withdrawal_events WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64}))
