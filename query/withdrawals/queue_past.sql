-- A page of the queue at a past block, oldest request first. Requests that were closed since are stored elsewhere, so
-- the query sorts all of them.
SELECT {columns}
FROM lists
WHERE ((list = {list} AND key > {block:UInt64} AND block <= {block:UInt64}
    AND (block, log_index, sub) > ({after_block:UInt64}, {after_log:UInt32}, {after_sub:UInt8}) -- if after
    AND vault = {vault:FixedString(20)} -- if vault
    AND (expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}))
  OR list = 'cursor')
  AND (block <= {block:UInt64} OR block >= {lately:UInt64})
ORDER BY list, block, log_index, sub, user, key
LIMIT {rows:UInt64}
