-- How many users a vault has, and the fence of the table.
SELECT sumIf(sign, list = 'member') AS users, maxIf((fence_seq, fence_block, fence_before), list = 'cursor') AS fence
FROM users
WHERE list IN ('cursor', 'member')
  AND (list = 'cursor' OR vault = {vault:FixedString(20)} AND partner = 0 AND first_block <= {block:UInt64})
