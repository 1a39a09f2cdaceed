-- How many requests are in the queue, of a vault or of all for zeros. One more row has the fence of the table.
SELECT sum(sign) AS total, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM withdrawals
WHERE list = 'queue' AND user = toFixedString('', 20) AND key > {block:UInt64} AND requested_block <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND (expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64})
UNION ALL
SELECT toInt64(0), max((fence_seq, fence_block, fence_before))
FROM withdrawals
WHERE list = 'cursor'
