-- How many users deposited through a partner, and the fence of the table.
SELECT sumIf(sign, list = 'member') AS users, maxIf((fence_seq, fence_block, fence_before), list = 'cursor') AS fence
FROM users
WHERE list IN ('cursor', 'member')
  AND (list = 'cursor' OR vault = toFixedString('', 20) AND partner = {partner:UInt32} AND first_block <= {block:UInt64})
