-- The requests in the queue, of all vaults or one, or with unfunded those of them that wait for money: each counts as one,
-- or as what was asked for. Of the live logs of a request, which are in the log in the order of the chain, the first that
-- asked is the one; it is over when something ended it after that, and funded when it was funded after that. What is over
-- at last was over from its first end on, so the last end and the last funding tell as much as the first.
SELECT asked AS seq, toInt8(1) AS sign, asked_block AS block, asked_log AS log_index, 'WithdrawalRequested' AS event, vault, request_index AS id,
  if({measure:String} = 'count', toInt256(1), estimate) AS change
FROM (
  SELECT vault, request_index, minIf(seq, kind = 'requested') AS asked, argMinIf(block, seq, kind = 'requested') AS asked_block,
    argMinIf(log_index, seq, kind = 'requested') AS asked_log, argMinIf(assets, seq, kind = 'requested') AS estimate,
    argMinIf(expires_ts, seq, kind = 'requested') AS expires
  FROM withdrawal_events
  WHERE ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND seq NOT IN (
      SELECT retracts
      FROM withdrawal_events
      WHERE ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)}) AND sign = -1 AND seq <= {seq:UInt64}
    )
  GROUP BY vault, request_index
  HAVING asked > 0 AND maxIf(seq, kind IN ('claimed', 'cancelled', 'expired')) < asked
    AND if(maxIf(seq, kind = 'funded') > asked, {unfunded:UInt32} = 0, expires = 0 OR expires > {now:UInt64})
)
UNION ALL
SELECT seq, sign, block, log_index, 'WithdrawalRequested', vault, request_index, toInt256(0)
FROM withdrawal_events
WHERE {retracted:UInt32} = 1 AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND kind = 'requested' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND (sign = -1 OR seq IN (SELECT retracts FROM withdrawal_events WHERE sign = -1 AND seq <= {seq:UInt64}))
