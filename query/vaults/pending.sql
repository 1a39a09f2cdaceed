-- How many requests of a vault are in the queue, and the fence of the table.
SELECT sumIf(sign, vault != toFixedString('', 20)) AS pending, max((fence_seq, fence_block, fence_before)) AS fence
FROM withdrawals
WHERE closed_block > {block:UInt64} AND requested_block <= {block:UInt64}
  AND vault IN ({vault:FixedString(20)}, toFixedString('', 20))
  AND (expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64})
