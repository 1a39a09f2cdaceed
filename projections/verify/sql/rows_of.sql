-- Rows of a slice of some lists as text: the number of copies of each, whether it belongs to the slice or is only the
-- cursor, and the seq of the cursor.
SELECT toString(list) AS name, {line} AS line, toInt64(sum({weight})) AS times,
  (toString(list), cityHash64({columns}) % {pieces:UInt64}) IN ({chosen}) AS compared, if(list = 'cursor', seq, 0) AS cursor_seq
FROM {from}
WHERE compared OR list = 'cursor'
GROUP BY {columns}
HAVING times != 0
