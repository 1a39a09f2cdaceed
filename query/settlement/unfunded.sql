-- How many requests of each vault wait for money, and for how much. One more row, of the vault zero, has the fence of the
-- table.
SELECT vault, sum(sign) AS total, sum(sign * estimate) AS amount, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM withdrawals
WHERE list = 'queue' AND user = toFixedString('', 20) AND key > {block:UInt64} AND requested_block <= {block:UInt64}
  AND funded_block > {block:UInt64} AND (expires_ts = 0 OR expires_ts > {now:UInt64})
GROUP BY vault
UNION ALL
SELECT toFixedString('', 20), toInt64(0), toInt256(0), max((fence_seq, fence_block, fence_before))
FROM withdrawals
WHERE list = 'cursor'
