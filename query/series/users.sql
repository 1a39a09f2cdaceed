-- How many users a vault won in each bucket, by the time at which they first deposited or asked; those from before the
-- first bucket are in the one before it. One more row has the fence of the table.
SELECT greatest(intDiv(toInt64(first_ts) + {shift:Int64}, {width:Int64}), {first:Int64} - 1) AS bucket, sum(sign) AS users,
  (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence, 0 AS is_cursor
FROM users
WHERE list = 'member' AND vault = {vault:FixedString(20)} AND partner = 0 AND first_block <= {block:UInt64}
GROUP BY bucket
UNION ALL
SELECT toInt64(0), toInt64(0), max((fence_seq, fence_block, fence_before)), 1
FROM users
WHERE list = 'cursor'
