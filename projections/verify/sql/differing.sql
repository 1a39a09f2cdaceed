-- The first row of a slice that a derived table has not as often as its definition gives it: the seq up to which the table
-- is written, the row in words, how often it is in the table and in the definition.
SELECT max(written), minIf(line, differs), argMinIf(found, line, differs), argMinIf(wanted, line, differs)
FROM (
  SELECT any(concatWithSeparator(' ', {words})) AS line, maxIf(seq, is_cursor) AS written, sum(held) AS found, sum(given) AS wanted,
    NOT is_cursor AND found != wanted AS differs
  FROM ({sides})
  WHERE is_cursor OR print % {slices:UInt64} = {slice:UInt64}
  GROUP BY print, is_cursor
)
