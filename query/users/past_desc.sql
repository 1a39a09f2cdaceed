-- A page of the users by what they deposited or withdrew up to a past block: everybody is added up. The first part has
-- those who deposited and withdrew nothing yet. One more row has the fence of the table.
SELECT user, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence, 0 AS is_cursor
FROM (
  SELECT user, sign AS seen, toInt256(0) AS amount
  FROM users
  WHERE list = 'first' AND key <= toInt256({block:UInt64})
  UNION ALL
  SELECT user, toInt8(0), if(sign = 1, assets, -assets)
  FROM deposits
  WHERE {list:String} = 'deposited' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
  UNION ALL
  SELECT user, toInt8(0), if(sign = 1, assets, -assets)
  FROM withdrawal_events
  WHERE {list:String} = 'withdrawn' AND kind = 'claimed' AND seq <= {seq:UInt64} AND block <= {block:UInt64}
)
GROUP BY user
HAVING sum(seen) > 0
ORDER BY sum(amount) DESC, user DESC
LIMIT {limit:UInt64} OFFSET {offset:UInt64}
UNION ALL
SELECT toFixedString('', 20), max((fence_seq, fence_block, fence_before)), 1
FROM users
WHERE list = 'cursor'
