-- The users of a vault (zero: of all vaults) at a block with their deposits and claims. Ordered by
-- deposits or claims, the query reads the totals of all users, and users without deposits and claims have zero.
-- Ordered by first block, it reads only the totals of the users on the page. One more row is the cursor.
WITH known AS (
  SELECT user, sum(sign * block) AS came, sum(sign * ts) AS came_at
  FROM lists
  WHERE owner = {vault:FixedString(20)} AND scope = toFixedString('', 20) AND block <= {block:UInt64}
    AND list = 'members' -- unless came
    AND list = 'first_seen' AND (key, user) {beyond} ({after_key:Int256}, {after_user:FixedString(20)}) -- if came
  GROUP BY user
  HAVING sum(sign) > 0
  ORDER BY came {desc}, user {desc} LIMIT {rows:UInt64} -- if came
)
SELECT {list:String} AS list, address, sum(assets_in) AS total_in, sum(assets_out) AS total_out, toUInt64(sum(since)) AS first_block,
  toUInt32(sum(since_time)) AS first_time, multiIf({list:String} = 'deposited', total_in, {list:String} = 'withdrawn', total_out, toInt256(first_block)) AS place,
  toUInt64(0) AS seq, toUInt64(0) AS rewrites
FROM (
  SELECT owner AS address, sign * deposited AS assets_in, sign * claimed AS assets_out, toInt64(0) AS since, toInt64(0) AS since_time
  FROM lists
  WHERE list = 'user_totals' AND key > {block:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR scope = {vault:FixedString(20)})
    AND owner IN (SELECT user FROM known)
  UNION ALL
  SELECT user, toInt256(0), toInt256(0), came, came_at
  FROM known
)
GROUP BY address
HAVING (place, address) {beyond} ({after_key:Int256}, {after_user:FixedString(20)})
ORDER BY place {desc}, address {desc}
LIMIT {rows:UInt64} OFFSET {offset:UInt64}
UNION ALL
SELECT toString(list), owner, toInt256(0), toInt256(0), toUInt64(0), toUInt32(0), toInt256(0), toUInt64(sum(sign * seq)), toUInt64(sum(sign * rewrites))
FROM lists
WHERE list = 'cursor'
GROUP BY list, owner
