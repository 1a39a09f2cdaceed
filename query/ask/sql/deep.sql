-- Finds the start of a page that is far from the first entry of a list: the places of its first entry and of the next
-- one, without the columns that the page shows. The inner query is that of the page.
SELECT toString(key) AS sort_key, block, log_index, sub, user, max(nth) AS rows_read
FROM (
  SELECT list, key, block, log_index, sub, user, sign, count() OVER () AS nth
  FROM (
{page}
  )
)
WHERE list NOT IN ('cursor', 'cursor_end')
GROUP BY key, block, log_index, sub, user
HAVING sum(sign) > 0
ORDER BY {order of places}
LIMIT 2 OFFSET {offset:UInt64}
