-- A page of a list of users, out of the first {most} rows. Rows that cancel each other lie together, in any order: so behind
-- the last row of a user, live says how many users there are up to it. Only that of the last row may lack some of its rows,
-- and is left out. One more row has the cursor of the table.
SELECT key, user, sum(sign * first_ts) AS first_ts, sum(sign * deposited) AS deposited, sum(sign * withdrawn) AS withdrawn,
  toUInt64(0) AS cursor, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence, 0 AS is_cursor
FROM (
  SELECT key, user, first_ts, deposited, withdrawn, sign,
    count() OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS nth,
    sum(sign) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS live
  FROM (
    SELECT key, user, first_ts, deposited, withdrawn, sign
    FROM users
    WHERE list = {list:String} AND (list != 'first' OR key <= toInt256({block:UInt64}))
      AND key <= {from_key:Int256} AND (key, user) < ({from_key:Int256}, {from_user:FixedString(20)})
    ORDER BY list DESC, vault DESC, partner DESC, key DESC, user DESC
    LIMIT {most:UInt64}
  )
)
WHERE nth > {offset:UInt64}
GROUP BY key, user
HAVING sum(sign) > 0 AND argMax(live, nth) > {offset:UInt64} AND max(nth) < {most:UInt64}
ORDER BY key DESC, user DESC
LIMIT {limit:UInt64}
UNION ALL
SELECT toInt256(0), toFixedString('', 20), toInt64(0), toInt256(0), toInt256(0), max(seq), max((fence_seq, fence_block, fence_before)), 1
FROM users
WHERE list = 'cursor'
