-- A page of the requests in the queue, oldest first, out of the first {most} rows. Rows that cancel each other lie together,
-- in any order, also where an older branch of the chain had another request at the place: so behind the last row of a
-- request, live says how many requests there are up to it. Only that of the last row may lack some of its rows, and is left
-- out. One more row, of the vault zero, has the fence of the table.
SELECT vault, request_index, requested_block AS at_block, requested_log AS at_log, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM (
  SELECT requested_block, requested_log, vault, request_index, sign,
    count() OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS nth,
    sum(sign) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS live
  FROM (
    SELECT requested_block, requested_log, vault, request_index, sign
    FROM withdrawals
    WHERE list = 'queue' AND user = toFixedString('', 20) AND key > {block:UInt64} AND requested_block <= {block:UInt64}
      AND requested_block >= {from_block:UInt64}
      AND (requested_block, requested_log, vault, request_index) > ({from_block:UInt64}, {from_log:UInt32}, {from_vault:FixedString(20)}, {from_index:UInt64})
      AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
      AND (expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64})
    ORDER BY requested_block, requested_log, vault, request_index
    LIMIT {most:UInt64}
  )
)
WHERE nth > {offset:UInt64}
GROUP BY requested_block, requested_log, vault, request_index
HAVING sum(sign) > 0 AND argMax(live, nth) > {offset:UInt64} AND max(nth) < {most:UInt64}
ORDER BY requested_block, requested_log, vault, request_index
LIMIT {limit:UInt64}
UNION ALL
SELECT toFixedString('', 20), toUInt64(0), toUInt64(0), toUInt32(0), max((fence_seq, fence_block, fence_before))
FROM withdrawals
WHERE list = 'cursor'
