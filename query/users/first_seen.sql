-- When some users were first seen, in a vault or, where that is zero, in any. One more row has the fence of the table.
SELECT user, sum(sign * first_ts) AS first_ts, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence, 0 AS is_cursor
FROM users
WHERE list = 'member' AND vault = {vault:FixedString(20)} AND partner = 0 AND key = 0 AND user IN ({users})
  AND first_block <= {block:UInt64}
GROUP BY user
HAVING sum(sign) > 0
UNION ALL
SELECT toFixedString('', 20), toInt64(0), max((fence_seq, fence_block, fence_before)), 1
FROM users
WHERE list = 'cursor'
