-- How many requests of each vault wait for money, and for how much; the row of the vault zero has the fence of the table.
SELECT vault, sum(sign) AS total, sum(sign * estimate) AS amount, max((fence_seq, fence_block, fence_before)) AS fence
FROM withdrawals
WHERE closed_block > {block:UInt64} AND requested_block <= {block:UInt64}
  AND (funded_block > {block:UInt64} OR vault = toFixedString('', 20))
  AND (expires_ts = 0 OR expires_ts > {now:UInt64})
GROUP BY vault
