-- A page of a list of users and one more, which proves that the page is whole: pairs of rows that cancel each other
-- lie together, and only the last of the first {most} rows may lack its other one. Users are counted row by row, and
-- those before the page are passed over by that: only from the row that counts the last of them are rows added up, so
-- that pairs cancel. One more row has the cursor of the table.
SELECT key, user, sum(sign * first_ts) AS first_ts, sum(sign * deposited) AS deposited, sum(sign * withdrawn) AS withdrawn,
  toUInt64(0) AS cursor, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence, 0 AS is_cursor
FROM (
  SELECT key, user, first_ts, deposited, withdrawn, sign, max(counted) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS reached
  FROM (
    SELECT key, user, first_ts, deposited, withdrawn, sign, sum(sign) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS counted
    FROM (
      SELECT key, user, first_ts, deposited, withdrawn, sign
      FROM users
      WHERE list = {list:String} AND (list != 'first' OR key <= toInt256({block:UInt64}))
        AND key <= {from_key:Int256} AND (key, user) < ({from_key:Int256}, {from_user:FixedString(20)})
      ORDER BY list DESC, vault DESC, partner DESC, key DESC, user DESC
      LIMIT {most:UInt64}
    )
  )
)
WHERE reached >= {offset:UInt64} OR {offset:UInt64} = 0
GROUP BY key, user
HAVING sum(sign) > 0
ORDER BY key DESC, user DESC
LIMIT {limit:UInt64} OFFSET least({offset:UInt64}, 1)
UNION ALL
SELECT toInt256(0), toFixedString('', 20), toInt64(0), toInt256(0), toInt256(0), max(seq), max((fence_seq, fence_block, fence_before)), 1
FROM users
WHERE list = 'cursor'
