-- How many users a list has. One more row has the cursor of the table, which would cost as much as the users if their
-- rows were searched for it.
SELECT sum(sign) AS total, toUInt64(0) AS cursor, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM users
WHERE list = {list:String} AND vault = {vault:FixedString(20)} AND partner = 0 AND first_block <= {block:UInt64}
UNION ALL
SELECT toInt64(0), max(seq), max((fence_seq, fence_block, fence_before))
FROM users
WHERE list = 'cursor'
