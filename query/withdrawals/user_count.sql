-- The number of requests of a user with one status, and when the first pending one lapses (0: none does).
SELECT list, toUInt64(sum(sign)) AS total, minIf(expires, closed_block > {block:UInt64} AND funded_block > {block:UInt64} AND expires > {now:UInt64}) AS lapses,
  toUInt64(sum(sign * seq)) AS seq, toUInt64(sum(sign * rewrites)) AS rewrites
FROM lists
WHERE (list = 'user_requests' AND owner = {user:FixedString(20)} AND block <= {block:UInt64}
    AND vault = {vault:FixedString(20)} -- if vault
    AND {status:String} = multiIf(closed_block <= {block:UInt64}, toString(closed_by),
      expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}, 'queued', 'expired'))
  OR list = 'cursor'
GROUP BY list
