-- A page of the users of a vault, or of all at a past block (vault is zero), by when they were first seen there or by what
-- they deposited or withdrew, after a user of the list: everybody is added up. The first part has who they are. One more
-- row has the fence of the table.
SELECT sum(amount) AS key, user, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence, 0 AS is_cursor
FROM (
  SELECT user, sign AS seen, if({list:String} = 'first', toInt256(first_block) * sign, toInt256(0)) AS amount
  FROM users
  WHERE list = 'member' AND vault = {vault:FixedString(20)} AND partner = 0 AND key = 0 AND first_block <= {block:UInt64}
  UNION ALL
  SELECT user, toInt8(0), if(sign = 1, assets, -assets)
  FROM deposits
  WHERE {list:String} = 'deposited' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
  UNION ALL
  SELECT user, toInt8(0), if(sign = 1, assets, -assets)
  FROM withdrawal_events
  WHERE {list:String} = 'withdrawn' AND kind = 'claimed' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
)
GROUP BY user
HAVING sum(seen) > 0 AND (key, user) > ({from_key:Int256}, {from_user:FixedString(20)})
ORDER BY key ASC, user ASC
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
UNION ALL
SELECT toInt256(0), toFixedString('', 20), max((fence_seq, fence_block, fence_before)), 1
FROM users
WHERE list = 'cursor'
