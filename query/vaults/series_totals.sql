-- The running totals of a vault at the ends of buckets: rows whose successor is in another bucket, even an earlier
-- one. Rows that cancel each other add up to nothing. One more row is the cursor.
SELECT list, intDiv(toInt64(ts) + {shift:Int64}, {width:Int64}) AS bucket, block AS from_block,
  toUInt64(sum(sign * deposits)) AS deposit_count, toString(sum(sign * deposited)) AS deposit_sum,
  toUInt64(sum(sign * requests)) AS request_count, toString(sum(sign * estimated)) AS estimate_sum,
  toUInt64(sum(sign * claims)) AS claim_count, toString(sum(sign * claimed)) AS claim_sum, toUInt64(sum(sign * users)) AS user_count,
  toUInt64(sum(sign * seq)) AS seq, toUInt64(sum(sign * rewrites)) AS rewrites
FROM lists
WHERE (list = 'totals' AND owner = {vault:FixedString(20)} AND scope = {vault:FixedString(20)} AND block <= {block:UInt64}
    AND (ts < {until:Int64} OR closed_ts > 0 AND closed_ts < {until:Int64})
    AND (key > {block:UInt64} OR intDiv(toInt64(ts) + {shift:Int64}, {width:Int64}) != intDiv(toInt64(closed_ts) + {shift:Int64}, {width:Int64})))
  OR list = 'cursor'
GROUP BY list, bucket, block
HAVING sum(sign) > 0
