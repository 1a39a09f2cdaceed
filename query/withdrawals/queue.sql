-- A page of the requests in the queue, oldest first, and one more, which proves that the page is whole: rows that cancel
-- each other lie together, also where an older branch of the chain had another request at the place, and only the last of
-- the first {most} rows may lack the one that cancels it. One more row, of the vault zero, has the fence of the table.
SELECT vault, request_index, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM (
  SELECT vault, request_index, requested_block, requested_log, sign
  FROM withdrawals
  WHERE closed_block > {block:UInt64} AND requested_block <= {block:UInt64} AND vault != toFixedString('', 20)
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
    AND (expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64})
  ORDER BY requested_block, requested_log, vault, request_index
  LIMIT {most:UInt64}
)
GROUP BY requested_block, requested_log, vault, request_index
HAVING sum(sign) > 0
ORDER BY requested_block, requested_log, vault, request_index
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
UNION ALL
SELECT toFixedString('', 20), toUInt64(0), max((fence_seq, fence_block, fence_before))
FROM withdrawals
WHERE closed_block = {never:UInt64} AND vault = toFixedString('', 20)
