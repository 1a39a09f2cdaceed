-- How many users a list has, how many rows say so, and the cursor of the table.
SELECT sumIf(sign, list != 'cursor') AS total, countIf(list != 'cursor') AS rows,
  maxIf(seq, list = 'cursor') AS cursor, maxIf((fence_seq, fence_block, fence_before), list = 'cursor') AS fence
FROM users
WHERE list = 'cursor' OR list = {list:String} AND first_block <= {block:UInt64}
