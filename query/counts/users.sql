-- How many users there are: of a vault, through a partner, or all for zeros. One more row has the fence of the table, which
-- would cost as much as the users if their rows were searched for it.
SELECT sum(sign) AS total, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM users
WHERE list = 'member' AND vault = {vault:FixedString(20)} AND partner = {partner:UInt32} AND first_block <= {block:UInt64}
UNION ALL
SELECT toInt64(0), max((fence_seq, fence_block, fence_before))
FROM users
WHERE list = 'cursor'
