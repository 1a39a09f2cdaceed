-- How many withdrawals were asked for and claimed of a vault in each bucket, and what they sum up to: every live log counts,
-- as it does in the totals of users.
SELECT intDiv(toInt64(ts) + {shift:Int64}, {width:Int64}) AS bucket,
  sumIf(sign, kind = 'requested') AS requested, sumIf(sign * assets, kind = 'requested') AS estimate,
  sumIf(sign, kind = 'claimed') AS claimed, sumIf(sign * assets, kind = 'claimed') AS paid
FROM withdrawal_events
WHERE vault = {vault:FixedString(20)} AND kind IN ('requested', 'claimed') AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND ts >= {from:Int64} AND ts < {until:Int64}
GROUP BY bucket
SETTINGS optimize_use_projections = 0
