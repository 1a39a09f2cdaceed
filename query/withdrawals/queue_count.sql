-- How many requests are in the queue, how many rows say so, and the fence of the table.
SELECT sumIf(sign, vault != toFixedString('', 20)) AS total, countIf(vault != toFixedString('', 20)) AS rows,
  max((fence_seq, fence_block, fence_before)) AS fence
FROM withdrawals
WHERE closed_block > {block:UInt64} AND requested_block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault IN ({vault:FixedString(20)}, toFixedString('', 20)))
  AND (expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64})
