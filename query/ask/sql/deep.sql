-- Finds the start of a page that is far from the first entry of a list: the places of its first entry and of the next
-- one, without the columns that the page shows.
SELECT toString(key) AS sort_key, block, log_index, sub, user, max(nth) AS rows_read
FROM (
  SELECT key, block, log_index, sub, user, sign, count() OVER () AS nth
  FROM (
    SELECT key, block, log_index, sub, user, sign
    FROM lists
    WHERE list = {list:String} AND owner = {owner:FixedString(20)} AND scope = toFixedString('', 20) AND kind = {kind:String}
      AND block >= {first:UInt64} AND block <= {last:UInt64}
      AND key > {above:Int256} -- if above
      AND vault = {vault:FixedString(20)} -- if vault
      AND (expires = 0 OR expires > {now:UInt64} OR funded_block <= {block:UInt64}) -- if lasting
      AND (closed_by != 'void' OR closed_block > {last:UInt64}) -- if valid
    ORDER BY {order}
    LIMIT {rows:UInt64}
  )
)
GROUP BY key, block, log_index, sub, user
HAVING sum(sign) > 0
ORDER BY {order of places}
LIMIT 2 OFFSET {offset:UInt64}
