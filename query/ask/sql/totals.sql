-- The running totals of some owners in each scope, at two blocks: for each owner and scope the step that is true at each. Steps
-- that cancel each other add up to nothing. One more row is the cursor.
SELECT list, owner, scope, block AS from_block, toUInt64(key) AS until_block, toUInt64(sum(sign * deposits)) AS deposit_count, toString(sum(sign * deposited)) AS deposit_sum,
  toUInt64(sum(sign * requests)) AS request_count, toString(sum(sign * estimated)) AS estimate_sum,
  toUInt64(sum(sign * claims)) AS claim_count, toString(sum(sign * claimed)) AS claim_sum, toUInt64(sum(sign * users)) AS user_count,
  toUInt64(sum(sign * swept)) AS swept_count, toString(sum(sign * swept_assets)) AS swept_sum, toUInt64(sum(sign * swept_to)) AS last_swept,
  toUInt64(sum(sign * valuations)) AS valuation_count,
  toUInt64(sum(sign * seq)) AS seq, toUInt64(sum(sign * rewrites)) AS rewrites
FROM lists
WHERE (list = {list:String} AND owner IN ({owners}) AND key > {at:UInt64} AND block <= {at:UInt64})
  OR (list = {list:String} AND owner IN ({owners}) AND key > {before:UInt64} AND block <= {before:UInt64})
  OR list = 'cursor'
GROUP BY list, owner, scope, block, key
HAVING sum(sign) > 0
