-- For each vault: the number of requests in the queue, the number and the sum of pending ones, and when the first
-- pending one lapses (0: none does). One more row is the cursor. At a past block the index of blocks skips granules
-- of later requests, but not the cursor, whose block is one of the newest.
SELECT list, vault, toUInt64(sum(sign)) AS total, toUInt64(sumIf(sign, funded_block > {block:UInt64})) AS unfunded,
  toString(sumIf(sign * assets, funded_block > {block:UInt64})) AS unfunded_estimate,
  minIf(expires, funded_block > {block:UInt64} AND expires > 0) AS lapses,
  toUInt64(sum(sign * seq)) AS seq, toUInt64(sum(sign * rewrites)) AS rewrites
FROM lists
WHERE ((list = 'queue' AND key > {block:UInt64} AND block <= {block:UInt64}
    AND vault = {vault:FixedString(20)} -- if vault
    AND (expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}))
  OR list = 'cursor')
  AND (block <= {block:UInt64} OR block >= {lately:UInt64}) -- if past
GROUP BY list, vault
SETTINGS optimize_move_to_prewhere = 0, use_skip_indexes = 0 -- unless past
