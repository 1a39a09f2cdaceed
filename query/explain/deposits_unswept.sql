-- The deposits of a vault that no sweep has reached, for a sweep takes all up to a number: each counts as one, or as what
-- was put in.
SELECT seq, sign, block, log_index, 'DepositAccepted' AS event, vault, deposit_id AS id,
  if({measure:String} = 'count', toInt256(1), assets) AS change
FROM deposits
WHERE vault = {vault:FixedString(20)} AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND deposit_id > (
    SELECT max(to_id)
    FROM sweeps
    WHERE vault = {vault:FixedString(20)} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND seq NOT IN (SELECT retracts FROM sweeps WHERE vault = {vault:FixedString(20)} AND sign = -1 AND seq <= {seq:UInt64})
  )
SETTINGS optimize_use_projections = 0
