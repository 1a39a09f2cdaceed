-- What was deposited through a partner in each vault; the row of the vault zero has the fence of the table.
SELECT vault, sum(toInt64(sign * deposits)) AS deposits, sum(sign * volume) AS volume,
  max((fence_seq, fence_block, fence_before)) AS fence
FROM partner_totals
WHERE partner IN (0, {partner:UInt32}) AND from_block <= {block:UInt64} AND until_block > {block:UInt64}
GROUP BY vault
