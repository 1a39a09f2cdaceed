-- A page of the requests of a user, newest first, out of the first {most} rows as in the question for the queue; by status
-- where one is asked for, else 'any'. It is read in the order of the table and stops at the end of the page. One more row,
-- of the vault zero, has the fence of the table.
SELECT vault, request_index, key AS at_block, requested_log AS at_log, (toUInt64(0), toUInt64(0), toUInt64(0)) AS fence
FROM (
  SELECT key, requested_log, vault, request_index, sign,
    count() OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS nth,
    sum(sign) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS live
  FROM (
    SELECT key, requested_log, vault, request_index, sign
    FROM withdrawals
    WHERE list = 'user' AND user = {user:FixedString(20)} AND key <= {block:UInt64}
      AND key <= {from_block:UInt64}
      AND (key, requested_log, vault, request_index) < ({from_block:UInt64}, {from_log:UInt32}, {from_vault:FixedString(20)}, {from_index:UInt64})
      AND ({vault:FixedString(20)} = toFixedString('', 20) OR vault = {vault:FixedString(20)})
      AND ({status:String} = 'any' OR {status:String} = multiIf(closed_block <= {block:UInt64}, toString(closed_by),
        expires_ts = 0 OR expires_ts > {now:UInt64} OR funded_block <= {block:UInt64}, 'queued', 'expired'))
    ORDER BY list DESC, user DESC, key DESC, requested_log DESC, vault DESC, request_index DESC
    LIMIT {most:UInt64}
  )
)
WHERE nth > {offset:UInt64}
GROUP BY key, requested_log, vault, request_index
HAVING sum(sign) > 0 AND argMax(live, nth) > {offset:UInt64} AND max(nth) < {most:UInt64}
ORDER BY key DESC, requested_log DESC, vault DESC, request_index DESC
LIMIT {limit:UInt64}
UNION ALL
SELECT toFixedString('', 20), toUInt64(0), toUInt64(0), toUInt32(0), max((fence_seq, fence_block, fence_before))
FROM withdrawals
WHERE list = 'cursor'
SETTINGS max_block_size = 512, read_in_order_use_buffering = 0
