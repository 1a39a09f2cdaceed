-- A page of the queue at a past block, oldest request first. Requests that were closed since are stored elsewhere, so
-- the query sorts all of them.
SELECT list, seq, rewrites, toString(key) AS sort_key, block, log_index, sub, user, sign,
  vault, other, partner, id, toString(shares) AS share_amount, toString(assets) AS estimate, expires, ts, hash,
  funded_block, funded_ts, toString(funded_assets) AS funded_amount, closed_block, closed_ts, closed_by, toString(closed_assets) AS closed_amount
FROM lists
WHERE ((list = 'queue' AND key > {block:UInt64} AND block <= {block:UInt64}
    AND (block, log_index, sub) > ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
    AND vault = {vault:FixedString(20)} -- if vault
    AND (expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}))
  OR list = 'cursor')
  AND (block <= {block:UInt64} OR block >= {lately:UInt64})
ORDER BY list, block, log_index, sub, user, key
LIMIT {rows:UInt64}
