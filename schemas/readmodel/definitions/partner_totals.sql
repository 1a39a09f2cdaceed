-- What partner_totals is: the running totals of the live deposits up to a seq, and from which block to which they are true.
SELECT partner, vault, block AS from_block,
  leadInFrame(block, 1, {never:UInt64}) OVER (PARTITION BY partner, vault ORDER BY block ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS until_block,
  toUInt64(sum(count) OVER (PARTITION BY partner, vault ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS deposits,
  sum(amount) OVER (PARTITION BY partner, vault ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS volume
FROM (
  SELECT partner, vault, block, count() AS count, sum(assets) AS amount
  FROM deposits
  WHERE sign = 1 AND partner > 0 AND seq <= {seq:UInt64}
    AND seq NOT IN (SELECT retracts FROM deposits WHERE sign = -1 AND seq <= {seq:UInt64})
  GROUP BY partner, vault, block
)
