-- The first row of a slice that the lists have not as often as their definitions give it: the seq up to which they are
-- written, the row in words, how often the lists have it and how often the definitions give it.
SELECT max(written), minIf(line, differs), argMinIf(found, line, differs), argMinIf(wanted, line, differs)
FROM (
  SELECT any({line}) AS line, maxIf(seq, is_cursor) AS written, sum(held) AS found, sum(given) AS wanted,
    any(compared) AND found != wanted AS differs
  FROM ({sides})
  WHERE is_cursor OR print % {pieces:UInt64} = {piece:UInt64}
  GROUP BY print
)
