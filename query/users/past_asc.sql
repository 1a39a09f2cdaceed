-- A page of the users of a vault, or of all for zero, by what they deposited or claimed up to a past block, ascending: the totals of all
-- of them are read, and those who did neither have zero. One more row is the cursor.
WITH known AS (
  SELECT user
  FROM lists
  WHERE list = 'members' AND owner = {vault:FixedString(20)} AND scope = toFixedString('', 20) AND block <= {block:UInt64}
  GROUP BY user
  HAVING sum(sign) > 0
)
SELECT {list:String} AS list, address, sum(part) AS amount, toUInt64(0) AS seq, toUInt64(0) AS rewrites
FROM (
  SELECT owner AS address, sign * if({list:String} = 'deposited', deposited, claimed) AS part
  FROM lists
  WHERE list = 'user_totals' AND key > {block:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR scope = {vault:FixedString(20)})
    AND owner IN (SELECT user FROM known)
  UNION ALL
  SELECT user, toInt256(0)
  FROM known
)
GROUP BY address
HAVING (amount, address) > ({after_key:Int256}, {after_user:FixedString(20)})
ORDER BY amount, address
LIMIT {rows:UInt64} OFFSET {offset:UInt64}
UNION ALL
SELECT toString(list), owner, toInt256(0), toUInt64(sum(sign * seq)), toUInt64(sum(sign * rewrites))
FROM lists
WHERE list = 'cursor'
GROUP BY list, owner
