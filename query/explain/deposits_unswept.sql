-- The deposits of a vault that no sweep has reached: a sweep takes all deposits up to a number. Each counts as 1 or
-- as its assets.
SELECT seq, sign, block, log_index, sub, event, vault, user, ts, tx, if({measure:String} = 'count', toInt256(1), assets) AS change
FROM events
WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND effect = 'deposit' AND vault = {vault:FixedString(20)}
  AND toInt256(id) > (
    SELECT if(max(id_to) = 0, toInt256(-1), toInt256(max(id_to))) FROM events
    WHERE record = 'log' AND NOT passed AND NOT quarantined AND seq <= {seq:UInt64} AND block <= {block:UInt64}
      AND effect = 'sweep' AND vault = {vault:FixedString(20)} AND sign = 1 AND seq NOT IN ({gone}))
