-- When some users were first seen in a vault, or in any for zero. One more row is the cursor.
SELECT list, user, toUInt64(sum(sign * ts)) AS first_seen, toUInt64(sum(sign * seq)) AS seq, toUInt64(sum(sign * rewrites)) AS rewrites
FROM lists
WHERE (list = 'members' AND owner = {vault:FixedString(20)} AND scope = toFixedString('', 20) AND key IN ({keys}) AND block <= {block:UInt64})
  OR list = 'cursor'
GROUP BY list, user
HAVING sum(sign) > 0
