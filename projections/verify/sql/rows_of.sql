-- Rows of a slice of some lists in words, how often each is there, whether it is one of them or only the cursor, and the cursor's seq.
SELECT toString(list), {line} AS line, toInt64(sum({weight})) AS times,
  (toString(list), cityHash64({columns}) % {pieces:UInt64}) IN ({wanted}) AS compared, if(list = 'cursor', seq, 0)
FROM {from}
WHERE compared OR list = 'cursor'
GROUP BY {columns}
HAVING times != 0
