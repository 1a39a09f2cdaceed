-- How many requests a user made, of one status or 'any'. One more row has the fence of the table.
SELECT sum(sign) AS total, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM withdrawals
WHERE list = 'user' AND user = {user:FixedString(20)} AND key <= {block:UInt64}
  AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  AND ({status:String} = 'any' OR {status:String} = multiIf(closed_block <= {block:UInt64}, toString(closed_by),
      expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64}, 'queued', 'expired'))
UNION ALL
SELECT toInt64(0), max((fence_seq, fence_block, fence_before))
FROM withdrawals
WHERE list = 'cursor'
